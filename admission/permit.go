package admission

import (
	"sync/atomic"
	"time"

	"reprise/tasks"
)

// Request asks for one call.
type Request struct {
	Key          string     // task key; never in flight twice
	AttemptID    string     // made by the caller, unique per attempt; a repeat gets the same answer
	Path         tasks.Path // which kind of call
	Group        string     // customer or purpose; empty = none
	Generation   int64      // of the task; a higher one than recorded starts a new record
	Units        int64      // upper bound of what the call may bill; ≥ 0
	UnitsBounded bool       // false: no upper bound is known; refused where a unit budget is set
	Exclude      []string   // sources that refused this task in this delivery already
	Pinned       string     // only this source; empty = any
}

// Lost is an attempt of the key that was admitted and never settled: its
// worker died, or its settlement never arrived. Its units stay charged and it
// is already counted in the Record.
type Lost struct {
	AttemptID string
	Source    string
	Units     int64
	At        time.Time // when it was admitted
}

// trustMargin is what a permit is trusted for less than it lives.
const trustMargin = 2 * time.Second

// Permit allows one call. It lives PermitTTL and is renewed by Gates.Run until
// it is settled. Safe for concurrent use.
type Permit struct {
	Key, AttemptID string
	Path           tasks.Path
	Group          string
	Source         string
	Epoch          int64               // of the source+path; reports of an older epoch are ignored
	Units          int64               // reserved
	Probe          bool                // this call decides whether a shut source reopens
	Record         tasks.AttemptRecord // before this attempt, a Lost one included
	Lost           *Lost               // nil = none

	generation int64
	admitted   int64                     // ms of Redis's clock
	budgets    string                    // the unit budgets it charged, by name
	confirmed  atomic.Pointer[time.Time] // taken before the request that last confirmed the permit
	trusted    time.Duration
	sent       atomic.Bool // Valid said yes once: the call may be on its way
	lost       atomic.Bool
}

// Valid is asked right before the first body byte leaves. It answers nil only
// while the permit was confirmed less than TTL − 2 s ago, counted from before
// the confirming request, by the larger of monotonic and wall time.
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

// since is the larger of monotonic and wall time since t: a suspended machine
// stops the one, a clock set back the other.
func since(t time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}
