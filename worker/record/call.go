package record

import (
	"time"

	"reprise/retrypolicy"
	"reprise/store"
	"reprise/tasks"
)

// Attempt is one call to AudD, as far as it is known, and the decision about it.
type Attempt struct {
	ID         string
	Key        string
	Generation int64
	Path       tasks.Path
	Source     string
	Class      retrypolicy.Classified
	Decision   retrypolicy.Decision
	RequestID  string
	Units      int64 // reserved ones, which are billed if the decision keeps them; 0 = no bound is known
	Started    time.Time
	Latency    time.Duration
}

// Price is the price of 1,000 units. With 0 the price is unknown, and so are the costs.
type Price float64

// Call returns the call row of an attempt, with its cost. All call rows come from here.
func (p Price) Call(a Attempt) *store.Call {
	row := &store.Call{
		AttemptID: a.ID, Key: a.Key, Generation: a.Generation, Source: a.Source, Path: a.Path,
		Outcome: a.Decision.Outcome, Verdict: a.Decision.Verdict, Code: a.Class.Code, HTTPStatus: a.Class.HTTPStatus,
		RequestID: a.RequestID, Phase: string(a.Class.Phase), Latency: a.Latency, UnitBasis: "estimated",
		PossiblyBilled: a.Decision.PossiblyBilled, Reason: a.Decision.Reason, At: a.Started,
	}
	if row.Phase == "" {
		row.Phase = "unknown"
	}
	if a.Decision.UnitsKept {
		row.Units = a.Units
		if row.Units == 0 {
			row.UnitBasis = "unavailable"
		}
	}
	if p > 0 && row.UnitBasis != "unavailable" {
		price := float64(p) / 1000
		cost := price * float64(row.Units)
		row.Price, row.Cost = &price, &cost
	}
	return row
}
