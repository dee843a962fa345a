package admission

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrUnavailable wraps every failure to get an answer from the admission
// store: network, script error, unknown reply. No permit was given that the
// caller may use; admission fails closed (R20). Test with errors.Is.
var ErrUnavailable = errors.New("admission store unavailable")

// ErrPermitLost is what Permit.Valid answers when the permit may have passed
// to somebody else before the call was sent.
var ErrPermitLost = errors.New("permit is no longer certain")

// Gate names what refused a call. The same words are used in logs, metrics
// and `inspect why`.
type Gate string

// The closed set of gates.
const (
	GateConcurrency       Gate = "concurrency"        // permits of a source+path, configured or learned
	GateRequests          Gate = "requests"           // requests per minute, configured or learned
	GateUnits             Gate = "units"              // units per minute; and unit budgets just after Redis lost everything
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
	GateHalt              Gate = "halt"           // an account reason or a person
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

// isBudget says whether the gate is a unit budget or the account's quota.
func (g Gate) isBudget() bool { return slices.Contains(budgetGates, g) }

var budgetGates = []Gate{
	GateUnitsDay, GateUnitsMonth, GateGlobalUnitsDay, GateGlobalUnitsMonth, GateGroupUnitsDay, GateGroupUnitsMonth,
}

// UntilResumed is the RetryAfter of what no time opens, but a person, another token
// or other settings.
const UntilResumed = 24 * time.Hour

// Refusal says that a call may not go now. Nothing was taken.
type Refusal struct { //nolint:errname // an answer like a permit is one, and an error only on its way up
	Gate       Gate          // what refused; of several sources the one that reopens first
	Source     string        // whose gate it was; empty for global and group gates
	RetryAfter time.Duration // when to come back; never 0
	AllBlocked bool          // every usable source is shut (throttle, breaker, halt or a unit budget)
	Permanent  bool          // waiting does not help: unbounded, or more units than a whole budget
	FailFast   bool          // a unit budget or AudD's quota is used up and Config.QuotaFull is QuotaFailFast
	Reason     string        // of a halt: an outcome's name or a person's word; else empty
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
