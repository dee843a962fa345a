package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hibiken/asynq"

	"reprise/admission"
	"reprise/internal/redisconn"
	"reprise/store"
	"reprise/tasks"
)

// session is what a command has open.
type session struct {
	*app
	*printer
	redisURL string
	rdb      *redisconn.Client // nil unless needsRedis
	asynq    *asynq.Inspector
	pauses   *admission.Pauses
	store    *store.Store     // nil unless needsStore
	seen     *admission.State // the sources, once a pause made them of interest
	closers  []func()
}

// need says what a command works with.
type need int

const (
	needsRedis need = 1 << iota
	needsStore
)

// with loads the settings, opens what is needed, runs do and closes.
func (a *app) with(ctx context.Context, n need, do func(context.Context, *session) error) error {
	if err := a.load(); err != nil {
		return err
	}
	s := &session{app: a, printer: newPrinter(a)}
	defer s.close()
	redisURL, storeURL, err := a.addresses()
	if n&needsRedis != 0 {
		if err != nil {
			return &failure{exitUsage, err}
		}
		if err := s.openRedis(ctx, redisURL); err != nil {
			return err
		}
	}
	if n&needsStore != 0 {
		if err := s.openStore(ctx, storeURL); err != nil {
			return err
		}
	}
	return unusable(do(ctx, s))
}

func (s *session) openRedis(ctx context.Context, url string) error {
	if err := redisconn.Ping(ctx, url); errors.Is(err, redisconn.ErrURL) {
		return &failure{exitUsage, err}
	} else if err != nil {
		return unusable(err)
	}
	// Few retries and short timeouts: a person waits for the answer.
	rdb, err := redisconn.Admission(url)
	if err != nil {
		return &failure{exitUsage, err}
	}
	s.redisURL, s.rdb = url, rdb
	s.closers = append(s.closers, func() { _ = rdb.Close() }) // nothing is left to do on its connections
	s.asynq = asynq.NewInspectorFromRedisClient(rdb)
	s.pauses = admission.NewPauses(rdb, admission.DefaultPrefix)
	return nil
}

func (s *session) openStore(ctx context.Context, url string) error {
	if err := checkStoreFile(url); err != nil {
		return err
	}
	cfg := store.DefaultConfig()
	cfg.URL = url
	st, err := store.Open(ctx, cfg)
	if err != nil {
		return unusable(err)
	}
	s.store = st
	s.closers = append(s.closers, func() {
		if err := st.Close(); err != nil {
			fmt.Fprintf(s.std.err, "inspect: %s\n", err.Error())
		}
	})
	return nil
}

func (s *session) close() {
	for _, f := range slices.Backward(s.closers) {
		f()
	}
}

// gates are the gates as they are in force: sources come from Redis, where the
// workers' settings seeded them, so that this command never seeds others.
type gates struct {
	*admission.Gates
	limits   []admission.Limit
	revision admission.Revision
	sources  []string
	groups   []string
}

var errNoLimits = errors.New("no worker has written its limits to this Redis yet: start one, then set what you like")

// gates reads the limits in force. Revision.Number is 0 when there are none.
func (s *session) gates(ctx context.Context) (*gates, error) {
	reader, err := s.gatesOf(nil)
	if err != nil {
		return nil, &failure{exitUsage, err}
	}
	g := &gates{Gates: reader}
	if g.limits, g.revision, err = reader.LimitsInForce(ctx); err != nil {
		return nil, err
	}
	for _, l := range g.limits {
		if group, ok := strings.CutPrefix(l.Scope, admission.ScopeOfGroup("")); ok {
			g.groups = append(g.groups, group)
		} else if source, _, ok := strings.Cut(l.Scope, ":"); ok {
			g.sources = append(g.sources, source)
		}
	}
	g.groups, g.sources = distinct(g.groups), distinct(g.sources)
	if len(g.sources) == 0 {
		return g, nil
	}
	if g.Gates, err = s.gatesOf(g.sources); err != nil {
		return nil, fmt.Errorf("read the sources in force: %w", err)
	}
	return g, nil
}

// gatesOf are gates that know the sources. They name no groups: what they
// would seed for one that is new were a revision of its own.
func (s *session) gatesOf(sources []string) (*admission.Gates, error) {
	cfg := admission.DefaultConfig()
	cfg.TimeZone, cfg.MonthAnchor = s.cfg.TimeZone, s.cfg.MonthAnchor
	if len(sources) > 0 {
		cfg.Sources = nil
	}
	for _, name := range sources {
		cfg.Sources = append(cfg.Sources, admission.SourceConfig{Name: name})
	}
	cfg.Groups = map[string]admission.Group{}
	return admission.New(s.rdb, cfg)
}

// seeded is gates for commands that change something.
func (s *session) seeded(ctx context.Context) (*gates, error) {
	g, err := s.gates(ctx)
	if err == nil && g.revision.Number == 0 {
		return nil, refused("%w", errNoLimits)
	}
	return g, err
}

// queues are all queues there are or may be: those asynq has seen, and those
// of the paths and groups in force; paths first, then by name.
func (s *session) queues(g *gates) ([]string, error) {
	seen, err := s.asynq.Queues()
	if err != nil {
		return nil, fmt.Errorf("list the queues: %w", err)
	}
	out := []string{}
	for _, path := range tasks.Paths {
		out = append(out, path.Queue(""))
		more := []string{}
		for _, group := range g.groups {
			more = append(more, path.Queue(group))
		}
		for _, q := range seen {
			if p, _, err := tasks.SplitQueue(q); err == nil && p == path {
				more = append(more, q)
			}
		}
		out = append(out, slices.DeleteFunc(distinct(more), func(q string) bool { return q == path.Queue("") })...)
	}
	for _, q := range distinct(seen) {
		if !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	return out, nil
}

func distinct(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
