package admission

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/tasks"
)

// BudgetState is one unit budget of the current day or month.
type BudgetState struct {
	Of       string    `json:"of"`     // main/recognize, global, group/ugc
	Period   string    `json:"period"` // day or month
	Cap      int64     `json:"cap"`
	Spent    int64     `json:"spent"`    // Reserved + Spent ≤ Cap
	Reserved int64     `json:"reserved"` // by calls under way
	Resets   time.Time `json:"resets"`   // UTC
	Missing  bool      `json:"missing"`  // not counted yet: nothing is admitted
}

// SourceState is the state of one source+path. Times are Redis's.
type SourceState struct {
	Source             string        `json:"source"`
	Path               tasks.Path    `json:"path"`
	InFlight           int64         `json:"in_flight"`
	Concurrency        int64         `json:"limit"`                // in force: the smaller of the configured and the learned; 0 = no limit
	ConcurrencyLearned bool          `json:"limit_learned"`        // AIMD, not the configuration, sets Concurrency
	RequestsPerMinute  int64         `json:"requests_per_minute"`  // request rate in force; 0 = no limit
	RateLearned        bool          `json:"rate_learned"`         // AIMD, not the configuration, sets RequestsPerMinute
	SuccessesPerMinute int64         `json:"successes_per_minute"` // measured over the last seconds
	Health             float64       `json:"health"`               // average success, 0 … 1
	Latency            time.Duration `json:"-"`                    // average of successful calls; 0 = none yet
	LastSuccess        time.Time     `json:"-"`                    // zero = none yet
	Failures           int64         `json:"failures_in_a_row"`
	Epoch              int64         `json:"epoch"`
	ThrottledUntil     time.Time     `json:"-"` // zero = not throttled
	BreakerOpen        bool          `json:"breaker_open"`
	BreakerUntil       time.Time     `json:"-"` // when a probe may go
	Halt               string        `json:"-"` // reason; empty = not halted
	HaltBy             string        `json:"-"`
	HaltSince          time.Time     `json:"-"`
	LastHalt           time.Time     `json:"-"`                   // when the latest halt began, even if it has ended; zero = never halted
	ProbeAt            time.Time     `json:"-"`                   // when a halt may be probed; zero = only an operator resumes it
	ProbeKey           string        `json:"-"`                   // task that probes; empty = none
	LastRefusedToken   string        `json:"refused_fingerprint"` // the first of RefusedTokens; empty = none
	RefusedTokens      []string      `json:"-"`                   // of tokens refused since the last resume, newest first; their workers are blocked
	Budgets            []BudgetState `json:"budgets"`
}

// Blocked returns the gate that blocks every call now, and until when (zero = until an operator resumes the source). It
// returns an empty gate if no gate does. It ignores budgets.
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
	Name     string        `json:"name"`
	Ceiling  float64       `json:"-"` // 0 = none
	Source   string        `json:"-"` // pinned; empty = any
	InFlight int64         `json:"in_flight"`
	Budgets  []BudgetState `json:"budgets"`
}

// State is the state of the gates at one moment of Redis's clock.
type State struct {
	Now               time.Time     `json:"now"` // UTC
	Revision          int64         `json:"-"`
	InFlight          int64         `json:"in_flight"` // over all sources and paths
	Concurrency       int64         `json:"limit"`     // global; 0 = none
	RequestsPerMinute int64         `json:"-"`         // global limit; 0 = none
	Budgets           []BudgetState `json:"budgets"`
	Sources           []SourceState `json:"sources"` // sorted by source and path
	Groups            []GroupState  `json:"groups"`  // sorted by name
}

// TaskState is what admission stores about one task.
type TaskState struct {
	Path     tasks.Path
	Group    string              // of the last attempt; empty = none or no attempt yet
	Source   string              // of the last attempt
	Record   tasks.AttemptRecord // of all settled attempts; PossiblyBilled includes the attempt in flight
	InFlight bool
	Until    time.Time // when the permit ends unless it is renewed
	Since    time.Time // when the attempt that is not settled was admitted; zero = none
	Units    int64     // that this attempt reserved
	Probe    bool      // this attempt is the half-open probe of its source
	State    State     // with the sources of the task's path only
}

// TaskState returns a task's record and permit, and the state of its path's sources. A task that was never admitted has an
// empty record.
func (g *Gates) TaskState(ctx context.Context, key string) (TaskState, error) {
	name, _, _ := strings.Cut(key, "_")
	path, err := tasks.ParsePath(name)
	if err != nil {
		return TaskState{}, fmt.Errorf("read the state of task %q: %w", key, err)
	}
	r, err := g.readState(ctx, key)
	if err != nil {
		return TaskState{}, err
	}
	s := TaskState{Path: path, Group: r.Record.Group, Source: r.Record.Source, Record: r.Record.attempts()}
	if r.Record.AttemptID != "" {
		s.Since, s.Units, s.Probe, s.InFlight = r.Record.At(), r.Record.Units, r.Record.Probe, r.PermitWait > 0
	}
	if s.InFlight {
		s.Until = moment(r.Now + r.PermitWait)
	}
	s.State, err = g.state(ctx, func(p tasks.Path) bool { return p == path })
	return s, err
}

// State returns the state of all sources, groups and budgets, in two round trips.
func (g *Gates) State(ctx context.Context) (State, error) {
	return g.state(ctx, func(tasks.Path) bool { return true })
}

func (g *Gates) state(ctx context.Context, wanted func(tasks.Path) bool) (State, error) {
	const tuning = "state:" + ScopeTuning
	r, err := g.readState(ctx, "", tuning)
	if err != nil {
		return State{}, err
	}
	scopes := []string{ScopeGlobal}
	for scope := range strings.SplitSeq(r.Hashes[tuning]["scopes"], ",") {
		if _, path, ok := cutSource(scope); ok && wanted(path) || strings.HasPrefix(scope, groupPrefix) {
			scopes = append(scopes, scope)
		}
	}
	slices.Sort(scopes[1:])
	day, month := g.days(moment(r.Now))[1].Name, g.months(moment(r.Now))[1].Name
	var hashes []string
	for _, scope := range scopes {
		hashes = append(hashes, "state:"+scope, "budget:"+scope+":"+day, "budget:"+scope+":"+month)
	}
	if r, err = g.readState(ctx, "", hashes...); err != nil {
		return State{}, err
	}
	view := view{Gates: g, now: moment(r.Now), hashes: r.Hashes, day: day, month: month}
	global := r.Hashes["state:"+ScopeGlobal]
	s := State{
		Now: view.now.UTC(), Sources: []SourceState{}, Groups: []GroupState{}, Revision: global.int("revision"), InFlight: global.int("in_flight"), Concurrency: global.int("limit_concurrency"),
		RequestsPerMinute: global.int("limit_requests_per_minute"), Budgets: view.budgets(ScopeGlobal),
	}
	for _, scope := range scopes[1:] {
		if source, path, ok := cutSource(scope); ok {
			s.Sources = append(s.Sources, view.source(source, path))
		} else {
			s.Groups = append(s.Groups, view.group(scope))
		}
	}
	return s, nil
}

// view turns hashes into states.
type view struct {
	*Gates
	now        time.Time
	hashes     map[string]fields
	day, month string // names of the current periods
}

// budgets returns the limited unit budgets of a scope, never nil.
func (v view) budgets(scope string) []BudgetState {
	limits := v.hashes["state:"+scope]
	out := []BudgetState{}
	for _, b := range []struct {
		word, label string
		cap         int64
	}{{"day", v.day, limits.int("limit_units_per_day")}, {"month", v.month, limits.int("limit_units_per_month")}} {
		period, err := v.period(scope+":"+b.label, v.now)
		if b.cap <= 0 || err != nil { // err is impossible: the label is from days or months
			continue
		}
		h := v.hashes["budget:"+period.Name]
		_, seeded := h["spent"]
		out = append(out, BudgetState{
			Of: strings.Replace(scope, ":", "/", 1), Period: b.word, Cap: b.cap, Reserved: h.int("reserved"), Spent: h.int("spent"),
			Resets: period.End.UTC(), Missing: !seeded,
		})
	}
	return out
}

func (v view) source(source string, path tasks.Path) SourceState {
	scope := ScopeOf(source, path)
	h := v.hashes["state:"+scope]
	s := SourceState{
		Source: source, Path: path, InFlight: h.int("in_flight"), Concurrency: h.int("limit_concurrency"),
		RequestsPerMinute: h.int("limit_requests_per_minute"), SuccessesPerMinute: h.int("success_rate_milli") / 1000, Health: 1,
		Latency: h.millis("latency_ms"), LastSuccess: h.moment("last_success_at"), Failures: h.int("failures_in_row"), Epoch: h.int("epoch"),
		BreakerOpen: h.int("breaker_open") == 1, Halt: h["halt_reason"], LastHalt: h.moment("halt_at"), RefusedTokens: refusedTokens(h),
		Budgets: v.budgets(scope),
	}
	s.ProbeKey, _, _ = strings.Cut(h["probe"], " ")
	if len(s.RefusedTokens) > 0 {
		s.LastRefusedToken = s.RefusedTokens[0]
	}
	if _, ok := h["health_milli"]; ok {
		s.Health = float64(h.int("health_milli")) / 1000
	}
	if until := h.moment("throttled_until"); until.After(v.now) {
		s.ThrottledUntil = until
	}
	if s.BreakerOpen {
		s.BreakerUntil = h.moment("breaker_probe_at")
	}
	if s.Halt != "" {
		s.HaltBy, s.HaltSince, s.ProbeAt = h["halt_by"], s.LastHalt, h.moment("halt_probe_at")
	}
	if aimdCap := h.int("aimd_cap"); aimdCap > 0 {
		limit, learned := s.Concurrency, max(1, h.int("learned_concurrency_milli")/1000)
		if limit <= 0 {
			limit = aimdCap
		}
		s.ConcurrencyLearned = learned < limit || s.Concurrency <= 0
		s.Concurrency = min(limit, learned)
		if rate := h.int("learned_rate_milli") / 1000; rate > 0 && (s.RequestsPerMinute <= 0 || rate < s.RequestsPerMinute) {
			s.RequestsPerMinute, s.RateLearned = rate, true
		}
	}
	return s
}

// refusedTokens returns the fingerprints of the tokens that AudD refused, newest first.
func refusedTokens(h fields) []string {
	const prefix = "refused_token:"
	var out []string
	for field := range h {
		if fingerprint, ok := strings.CutPrefix(field, prefix); ok {
			out = append(out, fingerprint)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(h.int(prefix+b), h.int(prefix+a)), cmp.Compare(a, b))
	})
	return out
}

func (v view) group(scope string) GroupState {
	h := v.hashes["state:"+scope]
	s := GroupState{
		Name: strings.TrimPrefix(scope, groupPrefix), Ceiling: float64(h.int("limit_ceiling")) / 1000, Source: h["limit_source"],
		Budgets: v.budgets(scope),
	}
	for field := range h {
		if strings.HasSuffix(field, ":in_flight") {
			s.InFlight += h.int(field)
		}
	}
	return s
}

// stateReply is the reply of lua/read.lua.
type stateReply struct {
	Now        int64             `json:"now"`
	Record     record            `json:"record"`
	PermitWait int64             `json:"permit_wait_ms"`
	Hashes     map[string]fields `json:"hashes"`
}

// readState reads hashes, by their names without the prefix, and the record of a task (empty = none) at one moment.
func (g *Gates) readState(ctx context.Context, task string, hashes ...string) (stateReply, error) {
	var reply stateReply
	err := g.run(ctx, readScript, map[string]any{"task": task, "hashes": append([]string{}, hashes...)}, &reply)
	return reply, err
}

// fields is a Redis hash; an absent field is 0 or empty.
type fields map[string]string

// UnmarshalJSON accepts an empty list, because Lua writes an empty table as a list.
func (h *fields) UnmarshalJSON(text []byte) error {
	if string(text) == "[]" {
		return nil
	}
	return json.Unmarshal(text, (*map[string]string)(h))
}

func (h fields) int(field string) int64 {
	n, _ := strconv.ParseInt(h[field], 10, 64)
	return n
}

func (h fields) moment(field string) time.Time     { return moment(h.int(field)) }
func (h fields) millis(field string) time.Duration { return millis(h.int(field)) }
