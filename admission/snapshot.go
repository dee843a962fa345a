package admission

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/tasks"
)

// BudgetState is one unit budget of the current day or month.
type BudgetState struct {
	Period
	Cap             int64
	Reserved, Spent int64 // Reserved + Spent ≤ Cap
	Missing         bool  // not seeded: nothing is admitted
}

// SourceState is one source+path as the gates see it. Times are Redis's.
type SourceState struct {
	Source             string
	Path               tasks.Path
	InFlight           int64
	Concurrency        int64         // in force: the smaller of configured and learned; 0 = no limit
	ConcurrencyLearned bool          // AIMD, not the configuration, sets Permits
	RequestsPerMinute  int64         // request rate in force; 0 = no limit
	RateLearned        bool          // as PermitsLearned
	SuccessesPerMinute int64         // measured successes a minute over the last seconds
	Health             float64       // success average, 0 … 1
	Latency            time.Duration // average of successful calls; 0 = none yet
	LastSuccess        time.Time     // zero = none in this epoch's memory
	Failures           int64         // in a row
	Epoch              int64
	ThrottledUntil     time.Time // zero = not throttled
	BreakerOpen        bool
	BreakerUntil       time.Time // when a probe may go
	Halt               string    // reason; empty = not halted
	HaltBy             string
	HaltSince          time.Time
	LastHalt           time.Time // when the halt in force, or else the last one, began; zero = never halted
	ProbeAt            time.Time // when a halt may be probed; zero = only a person resumes
	ProbeKey           string    // task that probes or probed last
	LastRefusedToken   string    // of the token AudD refused last; workers that have one of Refused stay shut
	RefusedTokens      []string  // fingerprints of all tokens AudD refused since the last resume, newest first
	Budgets            []BudgetState
}

// Blocked names the gate that keeps every call out now, and until when (zero =
// only a person opens it); empty when none does. It does not look at budgets.
func (s SourceState) Blocked(now time.Time) (Gate, time.Time) {
	switch {
	case s.Halt != "":
		return GateHalt, s.ProbeAt
	case s.ThrottledUntil.After(now):
		return GateThrottle, s.ThrottledUntil
	case s.BreakerOpen:
		return GateBreaker, s.BreakerUntil
	}
	return "", time.Time{}
}

// GroupState is one group.
type GroupState struct {
	Name     string
	Ceiling  float64 // ceiling, 0 = none
	Source   string  // pinned; empty = any
	InFlight int64
	Budgets  []BudgetState
}

// State is everything the gates know at one moment of Redis's clock.
type State struct {
	Now               time.Time
	Revision          int64
	InFlight          int64 // over all sources and paths
	Concurrency       int64 // global limit; 0 = none
	RequestsPerMinute int64 // global limit; 0 = none
	Budgets           []BudgetState
	Sources           []SourceState // sorted by source and path
	Groups            []GroupState  // sorted by name
}

// TaskState is what `inspect why` needs of one task.
type TaskState struct {
	Key       string
	Path      tasks.Path
	Group     string              // of the last attempt; empty = none or no attempt yet
	Record    tasks.AttemptRecord // after all settled attempts; PossiblyBilled includes the one in flight
	InFlight  bool
	Until     time.Time // when the permit ends unless renewed
	AttemptID string    // of the unsettled attempt; empty = none
	Source    string    // of the last attempt
	Since     time.Time // when the unsettled attempt was admitted
	Units     int64     // it reserved
	Probe     bool
	State     State      // sources of the task's path only
	Pause     PauseState // of the task's queue
}

// read reads hashes as they are at one moment of Redis's clock, and when the
// key's permit ends (zero = none).
func (g *Gates) read(ctx context.Context, key string, names ...string) ([]hash, time.Time, time.Time, error) {
	args := []any{g.cfg.Prefix, key}
	for _, n := range names {
		args = append(args, n)
	}
	reply, err := g.run(ctx, peekScript, args)
	if err != nil {
		return nil, time.Time{}, time.Time{}, err
	}
	f := reader{list: reply}
	now, expiry := f.moment(), f.moment()
	if f.bad || len(f.list) != len(names) {
		return nil, time.Time{}, time.Time{}, fmt.Errorf("read admission state: %w: %w", ErrUnavailable, errReply)
	}
	hashes := make([]hash, len(names))
	for i := range names {
		hashes[i] = asHash(f.list[i])
	}
	return hashes, now, expiry, nil
}

// State reads all sources, groups and budgets, for metrics and
// `inspect sources`. Two round trips; it changes nothing.
func (g *Gates) State(ctx context.Context) (State, error) {
	return g.snapshot(ctx, func(tasks.Path) bool { return true })
}

func (g *Gates) snapshot(ctx context.Context, want func(tasks.Path) bool) (State, error) {
	hashes, now, _, err := g.read(ctx, "", "tuning")
	if err != nil {
		return State{}, err
	}
	var names []string
	for scope := range strings.SplitSeq(hashes[0]["scopes"], ",") {
		if _, path, ok := cutSource(scope); ok && want(path) || strings.HasPrefix(scope, "grp:") {
			names = append(names, scope)
		}
	}
	slices.Sort(names)
	all := append([]string{"g"}, names...)
	budgets := g.budgetNames(now, names)
	hashes, now, _, err = g.read(ctx, "", append(all, budgets...)...)
	if err != nil {
		return State{}, err
	}
	view := view{Gates: g, now: now, global: hashes[0], budgets: map[string]hash{}}
	for i, name := range budgets {
		view.budgets[name] = hashes[len(all)+i]
	}
	s := State{
		Now: now, Revision: view.global.int("rev"), InFlight: view.global.int("inflight"), Concurrency: view.global.int("lc"),
		RequestsPerMinute: view.global.int("lr"), Budgets: view.of("g", view.global),
	}
	for i, name := range names {
		h := hashes[i+1]
		if source, path, ok := cutSource(name); ok {
			s.Sources = append(s.Sources, view.source(source, path, h))
		} else {
			s.Groups = append(s.Groups, view.group(strings.TrimPrefix(name, "grp:"), h))
		}
	}
	return s, nil
}

func cutSource(scope string) (string, tasks.Path, bool) {
	rest, ok := strings.CutPrefix(scope, "s:")
	source, path, cut := strings.Cut(rest, ":")
	return source, tasks.Path(path), ok && cut
}

// budgetNames are the hashes of the current budgets of all scopes.
func (g *Gates) budgetNames(now time.Time, states []string) []string {
	day, month := g.labels(now)
	var out []string
	for _, name := range append([]string{"g"}, states...) {
		scope := strings.TrimPrefix(name, "s:")
		if group, ok := strings.CutPrefix(name, "grp:"); ok {
			scope = ScopeOfGroup(group)
		}
		out = append(out, "b:"+scope+":"+day, "b:"+scope+":"+month)
	}
	return out
}

// labels are the current day and budget month.
func (g *Gates) labels(now time.Time) (day, month string) {
	local := now.In(g.zone)
	first := time.Date(local.Year(), local.Month(), 1, 0, 0, 0, 0, g.zone)
	if local.Day() < g.cfg.MonthAnchor {
		first = first.AddDate(0, -1, 0)
	}
	return local.Format(time.DateOnly), first.Format("2006-01")
}

// view turns hashes into states.
type view struct {
	*Gates
	now     time.Time
	global  hash
	budgets map[string]hash
}

func (v view) of(scope string, limits hash) []BudgetState {
	day, month := v.labels(v.now)
	var out []BudgetState
	for _, b := range []struct {
		label string
		cap   int64
	}{{day, limits.int("ld")}, {month, limits.int("lm")}} {
		if b.cap <= 0 {
			continue
		}
		name := scope + ":" + b.label
		period, err := v.period(name)
		if err != nil {
			continue // cannot be: the label is ours
		}
		h := v.budgets["b:"+name]
		_, seeded := h["spent"]
		out = append(out, BudgetState{Period: period, Cap: b.cap, Reserved: h.int("reserved"), Spent: h.int("spent"), Missing: !seeded})
	}
	return out
}

func (v view) source(source string, path tasks.Path, h hash) SourceState {
	s := SourceState{
		Source: source, Path: path, InFlight: h.int("inflight"), Concurrency: h.int("lc"), RequestsPerMinute: h.int("lr"),
		SuccessesPerMinute: h.int("rq") / 1000, Health: 1, Latency: h.millis("lat"), LastSuccess: h.moment("ok"), Failures: h.int("fails"),
		Epoch: h.int("epoch"), BreakerOpen: h.int("brk") == 1, Halt: h["halt"], RefusedTokens: refused(h),
		Budgets: v.of(ScopeOf(source, path), h),
	}
	s.ProbeKey, _, _ = strings.Cut(h["probe"], " ")
	if len(s.RefusedTokens) > 0 {
		s.LastRefusedToken = s.RefusedTokens[0]
	}
	if _, ok := h["h"]; ok {
		s.Health = float64(h.int("h")) / 1000
	}
	if until := h.moment("thr"); until.After(v.now) {
		s.ThrottledUntil = until
	}
	if s.BreakerOpen {
		s.BreakerUntil = h.moment("brk_until")
	}
	s.LastHalt = h.moment("halt_at")
	if s.Halt != "" {
		s.HaltBy, s.HaltSince, s.ProbeAt = h["halt_by"], h.moment("halt_at"), h.moment("halt_probe")
	}
	if most := h.int("am"); most > 0 {
		limit := s.Concurrency
		if limit <= 0 {
			limit = most
		}
		learned := max(1, h.int("lim")/1000)
		s.ConcurrencyLearned = learned < limit || s.Concurrency <= 0
		s.Concurrency = min(limit, learned)
		if rate := h.int("rl") / 1000; rate > 0 && (s.RequestsPerMinute <= 0 || rate < s.RequestsPerMinute) {
			s.RequestsPerMinute, s.RateLearned = rate, true
		}
	}
	return s
}

// refused are the tokens of a source+path that AudD refused.
func refused(h hash) []string {
	var out []string
	for field := range h {
		if fingerprint, ok := strings.CutPrefix(field, "bad:"); ok {
			out = append(out, fingerprint)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(h.int("bad:"+b), h.int("bad:"+a)), cmp.Compare(a, b))
	})
	return out
}

func (v view) group(name string, h hash) GroupState {
	s := GroupState{Name: name, Ceiling: float64(h.int("share")) / 1000, Source: h["pin"], Budgets: v.of(ScopeOfGroup(name), h)}
	for field := range h {
		if strings.HasPrefix(field, "in:") && !strings.HasSuffix(field, "_wait") {
			s.InFlight += h.int(field)
		}
	}
	return s
}
