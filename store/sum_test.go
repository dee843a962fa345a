package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/store"
	"reprise/tasks"
)

func TestSumCallsCountsUnpricedCallsSeparately(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	price := 0.005
	priced := attempt("k1", 0, "a", tasks.Done, tasks.Match, 0)
	priced.Call.Cost, priced.Call.UnitBasis = &price, "measured"
	estimated := attempt("k2", 0, "b", tasks.Done, tasks.Match, 10)
	estimated.Call.Units, estimated.Call.Cost, estimated.Call.UnitBasis = 2, &price, "estimated"
	unpriced := attempt("k3", 0, "c", tasks.Done, tasks.NoMatch, 20)
	unpriced.Call.Units, unpriced.Call.Cost, unpriced.Call.UnitBasis, unpriced.Call.PossiblyBilled = 3, nil, "measured", true
	unknown := attempt("k4", 0, "d", tasks.Done, tasks.NoMatch, 30)
	unknown.Call.Units, unknown.Call.Cost, unknown.Call.UnitBasis = 0, nil, "unavailable"
	settleAll(t, s, priced, estimated, unpriced, unknown)

	sums, err := s.SumCalls(t.Context(), store.CallFilter{}, store.ByPath)
	require.NoError(t, err)
	require.Len(t, sums, 1)
	require.InDelta(t, 0.01, *sums[0].Cost, 1e-9)
	sums[0].Cost = nil
	require.Equal(t, store.CallSum{
		Of: "recognize", Calls: 4, Units: 6, UnpricedUnits: 3, UnpricedCalls: 1, PossiblyBilled: 1, UnknownUnits: 1, EstimatedUnits: 2,
	}, sums[0])
	sums, err = s.SumCalls(t.Context(), store.CallFilter{Key: "k3"}, store.ByOutcome)
	require.NoError(t, err)
	require.Len(t, sums, 1)
	require.Nil(t, sums[0].Cost, "no cost is known")
	_, err = s.SumCalls(t.Context(), store.CallFilter{}, "colour")
	require.ErrorIs(t, err, store.ErrInvalid)
}

func TestSumCallsByQuarterHour(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	first, second := attempt("k1", 0, "a", tasks.Done, tasks.Match, 0), attempt("k2", 0, "b", tasks.Done, tasks.Match, 0)
	first.Call.At = time.Date(2026, 11, 30, 13, 59, 59, 0, time.UTC)
	second.Call.At = time.Date(2026, 11, 30, 14, 0, 0, 0, time.UTC)
	settleAll(t, s, first, second)
	sums, err := s.SumCalls(t.Context(), store.CallFilter{}, store.ByQuarterHour)
	require.NoError(t, err)
	require.Len(t, sums, 2)
	require.Equal(t, time.Date(2026, 11, 30, 13, 45, 0, 0, time.UTC), sums[0].Start)
	require.Equal(t, second.Call.At, sums[1].Start)
}

func TestLastCallReturnsTheLatestCall(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	_, found, err := s.LastCall(t.Context(), "k1")
	require.NoError(t, err)
	require.False(t, found)
	settleAll(t, s, attempt("k1", 0, "b", tasks.Done, tasks.Match, 20), attempt("k1", 0, "a", tasks.Retry, tasks.Ambiguous, 10))
	last, found, err := s.LastCall(t.Context(), "k1")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "b", last.AttemptID)
}

func TestReplayableTasksAreCountedAndReopenedTasksAreFound(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	settleAll(t, s, attempt("k1", 0, "a", tasks.Archive, tasks.Quota, 0), attempt("k2", 0, "b", tasks.Archive, tasks.Quota, 10),
		attempt("k3", 0, "c", tasks.Archive, tasks.Blocked, 20), attempt("k4", 0, "d", tasks.Done, tasks.Match, 30))
	counts, err := s.CountByOutcome(t.Context(), store.TaskFilter{Replayable: true, Limit: 1})
	require.NoError(t, err)
	require.Equal(t, map[tasks.Outcome]int64{tasks.Quota: 2, tasks.Blocked: 1}, counts)

	_, err = s.Reopen(t.Context(), "k1", 0)
	require.NoError(t, err)
	_, err = s.Reopen(t.Context(), "k2", 0)
	require.NoError(t, err)
	settleAll(t, s, attempt("k2", 1, "e", tasks.Retry, tasks.Unavailable, 50))
	found, err := s.Tasks(t.Context(), store.TaskFilter{Reopened: true})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "k1", found[0].Key, "k2 was attempted after it was reopened")
}
