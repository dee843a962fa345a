package admission

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrUnavailable wraps every failure to get a decision from Redis: network, script
// error, unknown reply, clocks far apart. The caller has no permit: admission fails
// closed. Test with errors.Is.
var ErrUnavailable = errors.New("admission store unavailable")

// ErrPermitLost is the error of Permit.Valid when another call may have got the permit
// before this one was sent.
var ErrPermitLost = errors.New("permit is no longer certain")

// Gate is what refused a call. Logs, metrics and `inspect why` use the same words.
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
func (g Gate) isBudget() bool { return slices.Contains(budgetGates, g) }

var budgetGates = []Gate{
	GateUnitsDay, GateUnitsMonth, GateGlobalUnitsDay, GateGlobalUnitsMonth, GateGroupUnitsDay, GateGroupUnitsMonth,
}

// UntilResumed is the RetryAfter of a refusal that waiting does not end, but an
// operator, another token or other settings.
const UntilResumed = 24 * time.Hour

// Refusal says that a call is not admitted now. Nothing was taken.
type Refusal struct { //nolint:errname // an answer like a permit is one, and an error only on its way up
	Gate       Gate          // that refused; of several sources the one that admits first
	Source     string        // whose gate it was; empty for global and group gates
	RetryAfter time.Duration // when to ask again; never 0
	AllBlocked bool          // every usable source is blocked: throttled, halted, breaker open or budget used up
	Permanent  bool          // waiting never helps: no upper bound, or more units than a whole budget
	FailFast   bool          // a unit budget or AudD's quota is used up and Config.QuotaFull is QuotaFailFast
	Reason     string        // of a halt: an outcome's name or an operator's text; else empty
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("refused by gate %s of source %q for %s", r.Gate, r.Source, r.RetryAfter)
}

// InFlight says that another attempt of the same key holds a permit.
type InFlight struct { //nolint:errname // as Refusal
	Until time.Time // when that permit ends unless it is renewed; worker's wall clock
}

func (f *InFlight) Error() string {
	return "another attempt of this task is in flight until " + f.Until.UTC().Format(time.RFC3339)
}
