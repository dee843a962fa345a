package admission

import (
	"time"

	"reprise/tasks"
)

// record is what Redis keeps of a task; keys.go describes it.
type record struct {
	Attempt        string        `json:"attempt"`
	Source         string        `json:"source"`
	Group          string        `json:"group"`
	Units          int64         `json:"units"`
	AdmittedAt     int64         `json:"admitted_at"`
	Epoch          int64         `json:"epoch"`
	Probe          bool          `json:"probe"`
	Budgets        string        `json:"budgets"`
	Generation     int64         `json:"generation"`
	Counted        int           `json:"counted"`
	PossiblyBilled int           `json:"possibly_billed"`
	FailuresInRow  int           `json:"failures_in_row"`
	SameOutcome    int           `json:"same_outcome"`
	Throttles      int           `json:"throttles"`
	LastOutcome    tasks.Outcome `json:"last_outcome"`
	SpentMillis    int64         `json:"spent_ms"`
	FirstFailureAt int64         `json:"first_failure_at"`
	LostAttempt    string        `json:"lost_attempt"`
	LostSource     string        `json:"lost_source"`
	LostUnits      int64         `json:"lost_units"`
	LostAdmittedAt int64         `json:"lost_admitted_at"`
}

func (r record) attempts() tasks.AttemptRecord {
	return tasks.AttemptRecord{
		Generation: r.Generation, Counted: r.Counted, PossiblyBilled: r.PossiblyBilled, Streak: r.FailuresInRow, SameOutcome: r.SameOutcome,
		Throttles: r.Throttles, LastOutcome: r.LastOutcome, Spent: millis(r.SpentMillis), FirstFailure: moment(r.FirstFailureAt),
	}
}

// permit is the permit that the record's unsettled attempt holds.
func (r record) permit(q Request) *Permit {
	p := &Permit{
		Key: q.Key, AttemptID: q.AttemptID, Path: q.Path, Group: q.Group, Units: q.Units, generation: q.Generation,
		Source: r.Source, Epoch: r.Epoch, Probe: r.Probe, admitted: r.AdmittedAt, budgets: r.Budgets, Record: r.attempts(),
	}
	p.Record.PossiblyBilled-- // this attempt is charged already
	if r.LostAttempt != "" {
		p.Lost = &Lost{AttemptID: r.LostAttempt, Source: r.LostSource, Units: r.LostUnits, At: moment(r.LostAdmittedAt)}
	}
	return p
}

// moment is a time of Redis's clock; 0 is the zero time.
func moment(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
