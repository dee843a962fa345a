package admission

import (
	"sync/atomic"
	"time"

	"reprise/tasks"
)

// Request asks for one call.
type Request struct {
	Key          string     `json:"key"`               // task key; never in flight twice
	AttemptID    string     `json:"attempt"`           // made by the caller, unique per attempt; a repeat gets the same answer
	Path         tasks.Path `json:"path"`              // the kind of call
	Group        string     `json:"group,omitempty"`   // customer or purpose; empty = none
	Generation   int64      `json:"generation"`        // of the task; a higher one than recorded starts a new record
	Units        int64      `json:"units"`             // the most that the call may bill; ≥ 0
	UnitsBounded bool       `json:"units_bounded"`     // false: Units is no upper bound; refused where a unit budget is set
	Exclude      []string   `json:"exclude,omitempty"` // sources that refused this task in this delivery already
	Pinned       string     `json:"pinned,omitempty"`  // only this source; empty = any
}

// Lost is an attempt of the key that was admitted and never settled: its worker died,
// or its report never arrived. Its units stay charged, and Permit.Record counts it.
type Lost struct {
	AttemptID string
	Source    string
	Units     int64
	At        time.Time // when it was admitted
}

// trustMargin is how long before its end a permit is no longer trusted.
const trustMargin = 2 * time.Second

// Permit allows one call. It lives PermitTTL and is renewed by Gates.Run until
// it is settled. Safe for concurrent use.
type Permit struct {
	Key, AttemptID string
	Path           tasks.Path
	Group          string
	Source         string
	Epoch          int64               // of the source+path; the reports of older epochs are ignored
	Units          int64               // reserved
	Probe          bool                // half-open probe: this call decides whether a blocked source reopens
	Record         tasks.AttemptRecord // before this attempt, a Lost one included
	Lost           *Lost               // nil = none

	generation int64
	admitted   int64                     // ms of Redis's clock
	budgets    string                    // names of the unit budgets it charged, comma-separated
	confirmed  atomic.Pointer[time.Time] // taken before the request that last confirmed the permit
	trusted    time.Duration
	sent       atomic.Bool // Valid returned nil once: the call may be on its way
	lost       atomic.Bool
}

// Valid is called right before the first body byte is sent. It returns nil only while
// the permit was confirmed less than PermitTTL − 2 s ago, counted from before the
// confirming request, by the larger of monotonic and wall time.
func (p *Permit) Valid() error {
	if p.lost.Load() {
		return ErrPermitLost
	}
	if since(*p.confirmed.Load()) >= p.trusted {
		return ErrPermitLost
	}
	p.sent.Store(true)
	return nil
}

func (p *Permit) confirm(at time.Time) { p.confirmed.Store(&at) }

// since is the larger of monotonic and wall time since t: suspending the machine stops
// the one, setting the clock back the other.
func since(t time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}
