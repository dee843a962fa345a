package record

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/retrypolicy"
	"reprise/tasks"
)

func TestCallRowHasTheUnitsAndCostOfItsDecision(t *testing.T) {
	t.Parallel()
	kept := retrypolicy.Decision{Outcome: tasks.Match, Verdict: tasks.Done, UnitsKept: true}
	refunded := retrypolicy.Decision{Outcome: tasks.Throttled, Verdict: tasks.Snooze}
	for name, c := range map[string]struct {
		price    Price
		decision retrypolicy.Decision
		reserved int64
		units    int64
		basis    string
		cost     *float64
	}{
		"kept units have a cost":          {5, kept, 3, 3, "estimated", new(0.015)},
		"refunded units cost 0":           {5, refunded, 3, 0, "estimated", new(0.0)},
		"an unknown price is no cost":     {0, kept, 3, 3, "estimated", nil},
		"unknown units have unknown cost": {5, kept, 0, 0, "unavailable", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row := c.price.Call(Attempt{ID: "a", Key: "k", Path: tasks.Recognize, Decision: c.decision, Units: c.reserved, Started: time.Now()})
			require.Equal(t, c.units, row.Units)
			require.Equal(t, c.basis, row.UnitBasis)
			require.Equal(t, "unknown", row.Phase)
			if c.cost == nil {
				require.Nil(t, row.Cost)
				return
			}
			require.InDelta(t, *c.cost, *row.Cost, 1e-9)
		})
	}
}
