package admission

import (
	"sync/atomic"
	"time"

	"reprise/tasks"
)

// Request asks for one call.
type Request struct {
	Key          string     `json:"key"`               // task key; a task is never in flight twice
	AttemptID    string     `json:"attempt"`           // made by the caller, unique per attempt; a repeat gets the same reply
	Path         tasks.Path `json:"path"`              // the kind of call
	Group        string     `json:"group,omitempty"`   // customer or purpose; empty = none
	Generation   int64      `json:"generation"`        // of the task; a higher one than recorded starts a new record
	Units        int64      `json:"units"`             // the most that the call may bill; ≥ 0
	UnitsBounded bool       `json:"units_bounded"`     // false: Units is no upper bound; refused where a unit budget is set
	Exclude      []string   `json:"exclude,omitempty"` // sources that refused this task in this delivery already
	Pinned       string     `json:"pinned,omitempty"`  // only this source; empty = any
}

// Admitted is an attempt that the gates admitted, as Redis records it.
type Admitted struct {
	Key        string     `json:"key"`
	AttemptID  string     `json:"attempt"`
	Path       tasks.Path `json:"path"`
	Group      string     `json:"group,omitempty"`
	Source     string     `json:"source"`
	Units      int64      `json:"units"`       // reserved
	Generation int64      `json:"generation"`  // of the task
	Epoch      int64      `json:"epoch"`       // of the source+path; reports of older epochs are ignored
	AdmittedAt int64      `json:"admitted_at"` // ms of Redis's clock
	Budgets    string     `json:"budgets"`     // names of the unit budgets that it charged, comma-separated
}

// At returns when the attempt was admitted.
func (a Admitted) At() time.Time { return moment(a.AdmittedAt) }

// Permit allows one call. It lives for Config.PermitTTL, and Gates.Run renews it until it is settled. It is safe for
// concurrent use.
type Permit struct {
	Admitted
	Probe  bool                // half-open probe: this call decides whether a blocked source reopens
	Record tasks.AttemptRecord // before this attempt; it includes Lost
	// Lost is the task's attempt before this one, if it was never settled: its worker died, or its report never arrived.
	// Its units stay charged. nil = none.
	Lost *Admitted

	confirmed atomic.Pointer[time.Time] // taken before the request that last confirmed the permit
	trusted   time.Duration
	sent      atomic.Bool // Valid returned nil once: the call may be on its way
	lost      atomic.Bool
}

// trustMargin is how long before its end a permit is no longer trusted.
const trustMargin = 2 * time.Second

// Valid returns nil if the call may send its first body byte now. Call it right before that. It returns ErrPermitLost if the
// permit was last confirmed PermitTTL − 2 s ago or earlier, counted from before the confirming request and by the larger of
// monotonic and wall time.
func (p *Permit) Valid() error {
	if p.lost.Load() || since(*p.confirmed.Load()) >= p.trusted {
		return ErrPermitLost
	}
	p.sent.Store(true)
	return nil
}

func (p *Permit) confirm(at time.Time) { p.confirmed.Store(&at) }

// since returns the larger of monotonic and wall time since t. The monotonic clock stops while the machine sleeps, and the
// wall clock may be set back.
func since(t time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}

// record is what Redis keeps of a task; keys.go describes it.
type record struct {
	Admitted                     // the last attempt, without its Key; AttemptID is empty after its settle
	Probe          bool          `json:"probe"`
	Counted        int           `json:"counted"`
	PossiblyBilled int           `json:"possibly_billed"`
	FailuresInRow  int           `json:"failures_in_row"`
	SameOutcome    int           `json:"same_outcome"`
	Throttles      int           `json:"throttles"`
	LastOutcome    tasks.Outcome `json:"last_outcome"`
	SpentMillis    int64         `json:"spent_ms"`
	FirstFailureAt int64         `json:"first_failure_at"`
	Lost           *Admitted     `json:"lost"`
}

func (r record) attempts() tasks.AttemptRecord {
	return tasks.AttemptRecord{
		Generation: r.Generation, Counted: r.Counted, PossiblyBilled: r.PossiblyBilled, Streak: r.FailuresInRow, SameOutcome: r.SameOutcome,
		Throttles: r.Throttles, LastOutcome: r.LastOutcome, Spent: millis(r.SpentMillis), FirstFailure: moment(r.FirstFailureAt),
	}
}

// permit returns the permit of the task's unsettled attempt, which q acquired.
func (r record) permit(q Request) *Permit {
	p := &Permit{Admitted: r.Admitted, Probe: r.Probe, Record: r.attempts(), Lost: r.Lost}
	p.Key, p.Generation = q.Key, q.Generation // the record may have been lost and registered again without them
	p.Record.PossiblyBilled--                 // the record includes this attempt
	return p
}

// moment returns a time of Redis's clock; 0 is the zero time.
func moment(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
