package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/auddsim"
)

func TestOverheadPrintsItsFiguresAsJSON(t *testing.T) {
	t.Parallel()
	figures := lastLine(t, "overhead", "--rounds=1", "--tasks=400", "--warm=100", "--slots=16")
	require.Positive(t, figures["bare_per_s"])
	require.Positive(t, figures["governed_per_s"])
	require.InDelta(t, figures["governed_per_s"]/figures["bare_per_s"], figures["ratio"], 1e-9)
}

func TestGoodputCountsRateAndShareOfRefusedRequests(t *testing.T) {
	t.Parallel()
	c := counted{admitted: 98, refused: 2, time: 2 * time.Second}
	require.InDelta(t, 49, c.perS(), 1e-9)
	require.InDelta(t, 0.02, c.share(), 1e-9)
	require.Zero(t, counted{time: time.Second}.share())
}

func TestOverspendCountsUnitsOverTheBudgetAndRefusedRequests(t *testing.T) {
	t.Parallel()
	set := chaosSettings{dayUnits: 100}
	require.Zero(t, chaosFound{bill: auddsim.Bill{Counts: auddsim.Counts{Units: 100}}}.overspend(set))
	require.EqualValues(t, 5, chaosFound{bill: auddsim.Bill{Counts: auddsim.Counts{Units: 103}, Refused: 2}}.overspend(set))
	require.EqualValues(t, 2, chaosFound{bill: auddsim.Bill{Counts: auddsim.Counts{Units: 50}, Refused: 2}}.overspend(set), "units left of the budget do not offset refused requests")
}

func TestChaosFailsWhenNothingIsAdmittedBetweenTwoKills(t *testing.T) {
	t.Parallel()
	require.NoError(t, chaosFound{kills: 2, after: []int{3, 1}}.stalled())
	require.ErrorContains(t, chaosFound{kills: 2, after: []int{3, 0}}.stalled(), "after kill 2 of 2")
	require.NoError(t, chaosFound{}.stalled())
}
