package worker

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"reprise/admission"
	"reprise/internal/redisconn"
	"reprise/internal/timer"
	"reprise/tasks"
	"reprise/worker/warn"
)

const (
	// forwardInterval is how often asynq moves due retries to pending. With asynq's default of 5 s, all due tasks
	// would become pending at once, and short waits would have no effect.
	forwardInterval = time.Second
	// groupsInterval is how often the groups in force are read, and so the longest delay before a new group's queue
	// is served.
	groupsInterval = 2 * time.Second
)

// servers holds the worker's asynq servers. Each path has its own server for all of its queues, by weight, so that
// slow enterprise calls cannot occupy the slots of clips. A group with a share of the slots has a server beside it,
// because asynq bounds concurrency per server only. Safe for concurrent use.
type servers struct {
	slots    Slots
	interval time.Duration // between an idle server's checks for tasks
	drain    time.Duration // that running calls have after a stop
	handler  asynq.HandlerFunc
	onError  asynq.ErrorHandlerFunc
	conn     *redisconn.Client
	gates    *admission.Gates
	cordoned func(queue string) bool
	log      *slog.Logger
	warn     *warn.Limiter

	mu      sync.Mutex
	running []server
	limits  []admission.Limit // in force at the last read
	stopped bool
	retired sync.WaitGroup // servers that still drain
}

// plan says what one server serves.
type plan struct {
	path   tasks.Path
	slots  int
	queues map[string]int // weights
}

type server struct {
	plan
	*asynq.Server
}

func (p plan) equal(q plan) bool {
	return p.path == q.path && p.slots == q.slots && maps.Equal(p.queues, q.queues)
}

// plans returns the servers for the limits in force.
func (s *servers) plans(limits []admission.Limit) []plan {
	weights, shares := map[string]int{}, map[string]int{}
	for _, l := range limits {
		group, ok := strings.CutPrefix(l.Scope, "group/")
		if !ok {
			continue
		}
		weights[group] = max(weights[group], 1) // a group with any limit has a queue
		n, err := strconv.Atoi(l.Value)
		if err != nil {
			continue
		}
		switch l.Name {
		case "weight":
			weights[group] = max(n, 1)
		case "slot_share":
			shares[group] = n
		}
	}
	var out []plan
	add := func(p plan) {
		maps.DeleteFunc(p.queues, func(queue string, _ int) bool { return s.cordoned(queue) })
		if len(p.queues) > 0 {
			out = append(out, p)
		}
	}
	for _, path := range tasks.Paths {
		slots := s.slots.of(path)
		if slots == 0 {
			continue
		}
		shared := plan{path: path, slots: slots, queues: map[string]int{path.Queue(""): 1}}
		for group, weight := range weights {
			if share := shares[group]; share > 0 && share < 1000 {
				add(plan{path: path, slots: max(1, slots*share/1000), queues: map[string]int{path.Queue(group): 1}})
				continue
			}
			shared.queues[path.Queue(group)] = weight
		}
		add(shared)
	}
	return out
}

// queues returns the queues that this worker serves now, sorted.
func (s *servers) queues() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, srv := range s.running {
		out = slices.AppendSeq(out, maps.Keys(srv.queues))
	}
	slices.Sort(out)
	return out
}

// refresh serves the queues that are not cordoned now.
func (s *servers) refresh(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warn.Warn(ctx, "groups", "the servers of the queues could not be changed", s.serveLocked())
}

// serve starts and retires servers for the limits in force.
func (s *servers) serve(limits []admission.Limit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = limits
	return s.serveLocked()
}

// serveLocked starts the planned servers that do not run and retires those that are no longer planned. A retired
// server takes no new tasks and finishes the running ones.
func (s *servers) serveLocked() error {
	if s.stopped {
		return nil
	}
	var next []server
	for _, p := range s.plans(s.limits) {
		if i := slices.IndexFunc(s.running, func(srv server) bool { return srv.equal(p) }); i >= 0 {
			next = append(next, s.running[i])
			continue
		}
		srv := server{p, s.newServer(p)}
		if err := srv.Start(s.handler); err != nil {
			return fmt.Errorf("start a server for %s: %w", p.path, err)
		}
		next = append(next, srv)
	}
	for _, srv := range s.running {
		if !slices.ContainsFunc(next, func(other server) bool { return other.Server == srv.Server }) {
			srv.Stop()
			s.retired.Go(srv.Shutdown)
		}
	}
	s.running = next
	return nil
}

// watch serves the groups in force until ctx ends.
func (s *servers) watch(ctx context.Context) {
	timer.Every(ctx, groupsInterval, func(ctx context.Context) {
		limits, _, err := s.gates.LimitsInForce(ctx)
		if err != nil {
			return // deliveries report that admission is down
		}
		s.warn.Warn(ctx, "groups", "the servers of the queues could not be changed", s.serve(limits))
	})
}

// stop stops all servers at the same time, so that it takes as long as the longest drain. It calls stopWaiting
// once no server takes new tasks; waiting deliveries then return.
func (s *servers) stop(stopWaiting func()) {
	s.mu.Lock()
	s.stopped = true
	running := s.running
	s.mu.Unlock() // a delivery may call refresh before it ends
	for _, srv := range running {
		srv.Stop()
	}
	stopWaiting()
	s.conn.Stopping()
	var group sync.WaitGroup
	for _, srv := range running {
		group.Go(srv.Shutdown)
	}
	group.Wait()
	s.retired.Wait()
}

func (s *servers) newServer(p plan) *asynq.Server {
	return asynq.NewServerFromRedisClient(s.conn, asynq.Config{
		Concurrency:              p.slots,
		Queues:                   p.queues,
		TaskCheckInterval:        s.interval,
		DelayedTaskCheckInterval: forwardInterval,
		IsFailure:                isFailure,
		RetryDelayFunc:           retryDelay,
		ErrorHandler:             s.onError,
		ShutdownTimeout:          s.drain + settleMargin,
		Logger:                   asynqLog{s.log.With("component", "asynq", "path", string(p.path))},
		LogLevel:                 asynq.WarnLevel,
	})
}

// asynqLog is slog as asynq's logger.
type asynqLog struct{ log *slog.Logger }

func (l asynqLog) Debug(args ...any) { l.log.Debug(fmt.Sprint(args...)) }
func (l asynqLog) Info(args ...any)  { l.log.Info(fmt.Sprint(args...)) }
func (l asynqLog) Warn(args ...any)  { l.log.Warn(fmt.Sprint(args...)) }
func (l asynqLog) Error(args ...any) { l.log.Error(fmt.Sprint(args...)) }
func (l asynqLog) Fatal(args ...any) { l.log.Error(fmt.Sprint(args...)) }
