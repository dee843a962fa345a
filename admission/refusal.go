package admission

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrUnavailable is wrapped by every failure to get a decision from Redis: network, script error, unknown reply, clocks
// far apart. The caller has no permit.
var ErrUnavailable = errors.New("admission store unavailable")

// ErrPermitLost means that the permit may have ended, and another attempt may have got one.
var ErrPermitLost = errors.New("permit may have expired")

// Gate names what refused a call. Logs, metrics and `inspect why` use the same words.
type Gate string

// The closed set of gates.
const (
	GateConcurrency       Gate = "concurrency"        // permits of a source+path, configured or learned
	GateRequests          Gate = "requests"           // requests per minute, configured or learned
	GateUnits             Gate = "units"              // units per minute; also unit budgets during a recovery hold
	GateUnitsDay          Gate = "units_day"          // unit budget of the day
	GateUnitsMonth        Gate = "units_month"        // unit budget of the month
	GateGlobalConcurrency Gate = "global_concurrency" // permits over all sources and paths
	GateGlobalRequests    Gate = "global_requests"
	GateGlobalUnits       Gate = "global_units"
	GateGlobalUnitsDay    Gate = "global_units_day"
	GateGlobalUnitsMonth  Gate = "global_units_month"
	GateGroupConcurrency  Gate = "group_concurrency" // a group's share of the permits
	GateGroupRequests     Gate = "group_requests"    // a group's share of the rate
	GateGroupUnitsDay     Gate = "group_units_day"
	GateGroupUnitsMonth   Gate = "group_units_month"
	GateThrottle          Gate = "throttle"       // AudD said 429 or 611
	GateBreaker           Gate = "breaker"        // too many failures in a row
	GateHalt              Gate = "halt"           // an account reason or an operator
	GateUnbounded         Gate = "unbounded"      // a unit budget is set and the task has no upper bound
	GateUnitsTooMany      Gate = "units_too_many" // one call needs more than a whole budget
	GateNoCandidate       Gate = "no_candidate"   // every source was excluded or the pinned one is unknown
)

// AllGates lists every gate in a stable order, for metrics.
var AllGates = []Gate{
	GateConcurrency, GateRequests, GateUnits, GateUnitsDay, GateUnitsMonth, GateGlobalConcurrency, GateGlobalRequests,
	GateGlobalUnits, GateGlobalUnitsDay, GateGlobalUnitsMonth, GateGroupConcurrency, GateGroupRequests, GateGroupUnitsDay,
	GateGroupUnitsMonth, GateThrottle, GateBreaker, GateHalt, GateUnbounded, GateUnitsTooMany, GateNoCandidate,
}

// isBudget reports whether the gate is a unit budget.
func (g Gate) isBudget() bool {
	return strings.HasSuffix(string(g), "units_day") || strings.HasSuffix(string(g), "units_month")
}

// isConcurrency reports whether the gate limits calls in flight.
func (g Gate) isConcurrency() bool { return strings.HasSuffix(string(g), "concurrency") }

// isBusy reports whether the gate admits one more call whenever a call ends or time passes. Other gates stay closed until
// a moment.
func (g Gate) isBusy() bool {
	return g.isConcurrency() || strings.HasSuffix(string(g), "requests") || strings.HasSuffix(string(g), "units")
}

// UntilResumed is the RetryAfter of a refusal that time does not end. An operator, another token or other settings end it.
const UntilResumed = 24 * time.Hour

// Refusal means that a call is not admitted now. It took nothing.
type Refusal struct { //nolint:errname // a decision like a permit, and an error only on its way up
	Gate       Gate          `json:"gate"`        // that refused; of several sources, the one that admits first
	Source     string        `json:"source"`      // whose gate it was; empty for global and group gates
	RetryAfter time.Duration `json:"-"`           // when to acquire again; never 0
	AllBlocked bool          `json:"all_blocked"` // every usable source is blocked: throttled, halted, breaker open or budget used up
	Permanent  bool          `json:"permanent"`   // waiting never helps: no upper bound, or more units than a whole budget
	FailFast   bool          `json:"-"`           // a unit budget or AudD's quota is used up and Config.QuotaFull is QuotaFailFast
	Reason     string        `json:"reason"`      // of a halt: an outcome's name or an operator's text; else empty
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("refused by gate %s of source %q for %s", r.Gate, r.Source, r.RetryAfter)
}

// InFlight means that another attempt of the same task holds a permit.
type InFlight struct { //nolint:errname // as Refusal
	Until time.Time // when that permit ends unless it is renewed, by the worker's wall clock
}

func (f *InFlight) Error() string {
	return "another attempt of this task is in flight until " + f.Until.UTC().Format(time.RFC3339)
}
