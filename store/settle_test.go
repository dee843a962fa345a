package store_test

import (
	"context"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/store"
	"reprise/tasks"
)

// settleAll commits the settlements one after another.
func settleAll(t testing.TB, s *store.Store, settlements ...store.Settlement) {
	t.Helper()
	for _, st := range settlements {
		require.NoError(t, s.Settle(context.Background(), st))
	}
}

func TestSettleStoresEveryField(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	price, cost := 0.0035, 0.007
	st := attempt("k", 0, "a", tasks.Done, tasks.Match, 5)
	st.Result = json.RawMessage("{ \"title\" : \"<a&b>\" }")
	st.Payload = []byte{0, 0xff, 1}
	st.Call.Code, st.Call.HTTPStatus, st.Call.RequestID, st.Call.Reason = 51, 200, "req-1", "match: fine"
	st.Call.Price, st.Call.Cost, st.Call.PossiblyBilled = &price, &cost, true
	settleAll(t, s, st)

	require.Equal(t, store.TaskStatus{
		Known: true, Key: "k", Finished: true, Verdict: tasks.Done, Outcome: tasks.Match, Reason: "match of a",
		Result: st.Result, Path: tasks.Recognize, Queue: "recognize",
		CreatedAt: st.At, AttemptedAt: st.At, UpdatedAt: st.At, FinishedAt: st.At,
	}, status(t, s, "k"))
	require.Equal(t, []store.Call{*st.Call}, calls(t, s, "k"))
	payload, err := s.Payload(context.Background(), "k")
	require.NoError(t, err)
	require.Equal(t, st.Payload, payload, "a payload is bytes, not text")
}

func TestUnknownPriceIsStoredAsNULL(t *testing.T) {
	t.Parallel()
	s, zero := fresh(t), 0.0
	known := attempt("k", 0, "b", tasks.Retry, tasks.Unavailable, 2)
	known.Call.Cost = &zero
	settleAll(t, s, attempt("k", 0, "a", tasks.Retry, tasks.Unavailable, 1), known)
	got := calls(t, s, "k")
	require.Nil(t, got[0].Price)
	require.Nil(t, got[0].Cost, "NULL, not 0")
	require.Equal(t, &zero, got[1].Cost)
}

// countingCase has settlements in order and the expected task status.
type countingCase struct {
	settle     []store.Settlement
	generation int64
	outcome    tasks.Outcome
	finished   bool
	calls      int
}

func k(generation int64, id string, v tasks.Verdict, o tasks.Outcome, n int) store.Settlement {
	return attempt("k", generation, id, v, o, n)
}

func withoutCall(st store.Settlement) store.Settlement {
	st.Call = nil
	return st
}

var countingCases = map[string]countingCase{
	"a retry does not finish the task": {
		[]store.Settlement{k(0, "a", tasks.Retry, tasks.Unavailable, 1)}, 0, tasks.Unavailable, false, 1},
	"the later of two retries counts, in any order": {
		[]store.Settlement{k(0, "b", tasks.Snooze, tasks.Throttled, 2), k(0, "a", tasks.Retry, tasks.Unavailable, 1)}, 0, tasks.Throttled, false, 2},
	"the first of two retries in one millisecond counts": {
		[]store.Settlement{k(0, "a", tasks.Retry, tasks.Unavailable, 1), k(0, "b", tasks.Snooze, tasks.Throttled, 1)}, 0, tasks.Unavailable, false, 2},
	"a presumed crash without an attempt id is not replaced": {
		[]store.Settlement{withoutCall(k(0, "", tasks.Archive, tasks.Crash, 1)), withoutCall(k(0, "", tasks.Archive, tasks.Expired, 2))}, 0, tasks.Crash, true, 0},
	"a late retry does not reopen a finished task": {
		[]store.Settlement{k(0, "b", tasks.Done, tasks.Match, 2), k(0, "a", tasks.Retry, tasks.Unavailable, 9)}, 0, tasks.Match, true, 2},
	"the first verdict counts, and both calls are kept": {
		[]store.Settlement{k(0, "a", tasks.Done, tasks.NoMatch, 1), k(0, "b", tasks.Archive, tasks.InvalidAudio, 2)}, 0, tasks.NoMatch, true, 2},
	"the second verdict of an attempt does not count": {
		[]store.Settlement{k(0, "a", tasks.Done, tasks.NoMatch, 1), k(0, "a", tasks.Done, tasks.Match, 2)}, 0, tasks.NoMatch, true, 1},
	"the attempt's own verdict replaces a presumed crash": {
		[]store.Settlement{k(0, "a", tasks.Archive, tasks.Crash, 2), k(0, "a", tasks.Done, tasks.Match, 1)}, 0, tasks.Match, true, 1},
	"a presumed crash does not replace the attempt's own verdict": {
		[]store.Settlement{k(0, "a", tasks.Done, tasks.Match, 1), k(0, "a", tasks.Archive, tasks.Crash, 2)}, 0, tasks.Match, true, 1},
	"the attempt's own verdict replaces a presumed crash with retry": {
		[]store.Settlement{k(0, "a", tasks.Retry, tasks.Crash, 2), k(0, "a", tasks.Done, tasks.Match, 1)}, 0, tasks.Match, true, 1},
	"another attempt's verdict does not replace a presumed crash": {
		[]store.Settlement{k(0, "a", tasks.Archive, tasks.Crash, 1), k(0, "b", tasks.Done, tasks.Match, 2)}, 0, tasks.Crash, true, 2},
	"the attempt's own verdict replaces a hold": {
		[]store.Settlement{k(0, "a", tasks.Hold, tasks.Ambiguous, 1), k(0, "a", tasks.Done, tasks.Uploaded, 2)}, 0, tasks.Uploaded, true, 1},
	"an older generation does not change the task row": {
		[]store.Settlement{k(1, "b", tasks.Retry, tasks.Throttled, 2), k(0, "a", tasks.Done, tasks.Match, 9)}, 1, tasks.Throttled, false, 2},
	"a retry of a newer generation counts": {
		[]store.Settlement{k(0, "a", tasks.Done, tasks.Match, 5), k(2, "b", tasks.Retry, tasks.Throttled, 1)}, 2, tasks.Throttled, false, 2},
	"a final verdict of a newer generation counts": {
		[]store.Settlement{k(0, "a", tasks.Done, tasks.Match, 5), k(2, "b", tasks.Done, tasks.NoMatch, 1)}, 2, tasks.NoMatch, true, 2},
	"a call without a verdict does not change the task row": {
		[]store.Settlement{k(0, "a", tasks.Retry, tasks.Unavailable, 1), k(0, "b", "", tasks.Authentication, 2)}, 0, tasks.Unavailable, false, 2},
	"a verdict without a call counts": {
		[]store.Settlement{withoutCall(k(0, "x", tasks.Archive, tasks.Expired, 9))}, 0, tasks.Expired, true, 0},
}

func TestTaskRowShowsTheDecidingSettlement(t *testing.T) {
	t.Parallel()
	for name, row := range countingCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fresh(t)
			for range 2 { // the second round must change nothing
				settleAll(t, s, row.settle...)
				st := status(t, s, "k")
				require.Equal(t, row.generation, st.Generation)
				require.Equal(t, row.outcome, st.Outcome)
				require.Equal(t, row.finished, st.Finished)
				require.Len(t, calls(t, s, "k"), row.calls)
			}
		})
	}
}

func TestLateReportOfACrashedAttemptReplacesItsCallRow(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	lost := attempt("k", 0, "a", tasks.Retry, tasks.Crash, 9)
	lost.Call.PossiblyBilled, lost.Call.Phase = true, ""
	truth := attempt("k", 0, "a", tasks.Done, tasks.Match, 3)
	settleAll(t, s, lost, truth, lost)
	require.Equal(t, []store.Call{*truth.Call}, calls(t, s, "k"))
}

func TestHistoryKeepsTheResultOfEveryGeneration(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), fresh(t)
	settleAll(t, s, attempt("k", 0, "a", tasks.Done, tasks.NoMatch, 1))
	for range 2 {
		generation, err := s.Reopen(ctx, "k", 0)
		require.NoError(t, err)
		require.EqualValues(t, 1, generation, "a repeated Reopen changes nothing")
	}
	st := status(t, s, "k")
	require.False(t, st.Finished)
	require.Empty(t, st.Verdict)
	require.Nil(t, st.Result, "the result belongs to the earlier generation")
	require.True(t, st.FinishedAt.IsZero())

	settleAll(t, s, attempt("k", 1, "b", tasks.Done, tasks.Match, 2))
	history, err := s.History(ctx, "k")
	require.NoError(t, err)
	require.Len(t, history, 2)
	require.Equal(t, tasks.NoMatch, history[0].Outcome)
	require.JSONEq(t, `{"by":"a"}`, string(history[0].Result))
	require.EqualValues(t, 1, history[1].Generation)
	require.Equal(t, "b", history[1].AttemptID)
}

func TestReopenDoesNotChangeUnfinishedAndUnknownTasks(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), fresh(t)
	settleAll(t, s, attempt("k", 3, "a", tasks.Retry, tasks.Unavailable, 1))
	generation, err := s.Reopen(ctx, "k", 3)
	require.NoError(t, err)
	require.EqualValues(t, 3, generation, "an unfinished task may have a call in flight")
	require.Equal(t, tasks.Retry, status(t, s, "k").Verdict)
	_, err = s.Reopen(ctx, "nobody", 0)
	require.ErrorIs(t, err, store.ErrUnknownKey)
}

func TestReopenClearsATombstone(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), fresh(t)
	tomb := attempt("k", 0, "a", tasks.Archive, tasks.InvalidAudio, 1)
	tomb.Final = true
	settleAll(t, s, tomb)
	require.True(t, status(t, s, "k").Final)
	_, err := s.Reopen(ctx, "k", 0)
	require.NoError(t, err)
	require.False(t, status(t, s, "k").Final)
	settleAll(t, s, tomb)
	require.False(t, status(t, s, "k").Finished, "a repeated settlement of the old generation does not restore the tombstone")
}

func TestSettleRejectsInvalidSettlements(t *testing.T) {
	t.Parallel()
	s, nan := fresh(t), math.NaN()
	for name, spoil := range map[string]func(*store.Settlement){
		"no key":                      func(st *store.Settlement) { st.Key = "" },
		"no path":                     func(st *store.Settlement) { st.Path = "" },
		"no time":                     func(st *store.Settlement) { st.At = time.Time{} },
		"negative generation":         func(st *store.Settlement) { st.Generation = -1 },
		"finished with retry":         func(st *store.Settlement) { st.Verdict = tasks.Retry },
		"done but not finished":       func(st *store.Settlement) { st.Finished = false },
		"final but done":              func(st *store.Settlement) { st.Final = true },
		"result is not JSON":          func(st *store.Settlement) { st.Result = []byte("secret") },
		"call without attempt id":     func(st *store.Settlement) { st.Call.AttemptID = "" },
		"call belongs to another key": func(st *store.Settlement) { st.Call.Key = "other" },
		"call without path":           func(st *store.Settlement) { st.Call.Path = "" },
		"call without time":           func(st *store.Settlement) { st.Call.At = time.Time{} },
		"negative units":              func(st *store.Settlement) { st.Call.Units = -1 },
		"cost is not a number":        func(st *store.Settlement) { st.Call.Cost = &nan },
	} {
		st := attempt("k", 0, "a", tasks.Done, tasks.Match, 1)
		st.Payload = []byte("https://x/y?sig=secret")
		spoil(&st)
		err := s.Settle(context.Background(), attempt("fine", 0, "f", tasks.Done, tasks.Match, 1), st)
		require.ErrorIs(t, err, store.ErrInvalid, name)
		require.False(t, store.IsUnavailable(err), name)
		require.NotContains(t, err.Error(), "secret", name)
	}
	require.False(t, status(t, s, "fine").Known, "one invalid settlement rejects all of its caller")
	require.NoError(t, s.Settle(context.Background()), "no settlements are no error")
}

func TestSettleReplacesInvalidUTF8AndNUL(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	st := attempt("k", 0, "a", tasks.Archive, tasks.Unknown, 1)
	st.Reason = "unknown: \xff\x00 odd"
	settleAll(t, s, st)
	require.Equal(t, "unknown: \uFFFD\uFFFD odd", status(t, s, "k").Reason)
}
