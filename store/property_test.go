package store_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"reprise/store"
	"reprise/tasks"
)

// state is everything that a store returns for a key, except CreatedAt.
type state struct {
	Status  store.TaskStatus
	Calls   []store.Call
	History []store.Result
}

func stateOf(t testing.TB, s *store.Store, key string) state {
	t.Helper()
	history, err := s.History(context.Background(), key)
	require.NoError(t, err)
	st := state{Status: status(t, s, key), Calls: calls(t, s, key), History: history}
	st.Status.CreatedAt = time.Time{}
	return st
}

var finishes = []tasks.Verdict{tasks.Done, tasks.Archive, tasks.Hold}

// anySettlement returns a random settlement with one of few attempts and generations, so repeats, contradictions and
// late reports are common.
func anySettlement(t *rapid.T, key string, n int) store.Settlement {
	verdict := rapid.SampledFrom(append([]tasks.Verdict{""}, tasks.Verdicts...)).Draw(t, "verdict")
	outcome := rapid.SampledFrom([]tasks.Outcome{tasks.Match, tasks.Crash, tasks.Ambiguous, tasks.Unavailable}).Draw(t, "outcome")
	generation := rapid.Int64Range(0, 2).Draw(t, "generation")
	id := fmt.Sprintf("%s-%d-%d", key, generation, rapid.IntRange(0, 2).Draw(t, "attempt"))
	st := attempt(key, generation, id, verdict, outcome, n)
	if rapid.IntRange(0, 4).Draw(t, "call") == 0 {
		st.Call = nil
	}
	return st
}

// The test repeats contradictory settlements in random order.
func TestRepeatedSettlementsChangeNothing(t *testing.T) {
	t.Parallel()
	s, run := fresh(t), 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		key := fmt.Sprintf("k%d", run)
		var settled []store.Settlement
		for n := range rapid.IntRange(1, 8).Draw(rt, "settlements") {
			settled = append(settled, anySettlement(rt, key, rapid.IntRange(0, n+1).Draw(rt, "at")))
		}
		require.NoError(t, s.Settle(context.Background(), settled...)) // in order, in one transaction
		before := stateOf(t, s, key)
		again := rapid.SliceOfN(rapid.SampledFrom(settled), 1, 12).Draw(rt, "again")
		require.NoError(t, s.Settle(context.Background(), again...))
		if diff := cmp.Diff(before, stateOf(t, s, key)); diff != "" {
			rt.Fatalf("settling again changed the store: %s", diff)
		}
	})
}

// The settlements are consistent: each generation has one final verdict, and every presumption is about that
// verdict's attempt.
func TestConsistentSettlementsGiveTheSameStateInEveryOrder(t *testing.T) {
	t.Parallel()
	s, run := fresh(t), 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		plan := consistent(rt)
		one := settleAs(t, s, fmt.Sprintf("k%d-one", run), plan)
		other := settleAs(t, s, fmt.Sprintf("k%d-other", run), rapid.Permutation(plan).Draw(rt, "order"))
		if diff := cmp.Diff(one, other); diff != "" {
			rt.Fatalf("the order of the settlements changed the state: %s", diff)
		}
	})
}

// consistent returns random settlements that do not contradict each other.
func consistent(rt *rapid.T) []store.Settlement {
	var plan []store.Settlement
	add := func(generation int64, id string, v tasks.Verdict, o tasks.Outcome) {
		plan = append(plan, attempt("?", generation, id, v, o, len(plan)+1))
	}
	for generation := range rapid.Int64Range(1, 3).Draw(rt, "generations") {
		for i := range rapid.IntRange(0, 3).Draw(rt, "failures") {
			add(generation, fmt.Sprintf("%d-%d", generation, i), tasks.Retry, tasks.Unavailable)
		}
		winner := fmt.Sprintf("%d-w", generation)
		switch rapid.IntRange(0, 2).Draw(rt, "presumed") {
		case 1:
			add(generation, winner, rapid.SampledFrom([]tasks.Verdict{tasks.Retry, tasks.Archive}).Draw(rt, "crash"), tasks.Crash)
		case 2:
			add(generation, winner, "", tasks.Crash)
		}
		if rapid.Bool().Draw(rt, "finished") {
			add(generation, winner, tasks.Done, tasks.Match)
		}
	}
	return plan
}

// settleAs settles a plan under a key and returns the task's state without the key.
func settleAs(t testing.TB, s *store.Store, key string, plan []store.Settlement) state {
	t.Helper()
	own := make([]store.Settlement, len(plan))
	for i, st := range plan {
		call := *st.Call
		call.AttemptID, call.Key = key+call.AttemptID, key
		st.Key, st.Call = key, &call
		own[i] = st
	}
	require.NoError(t, s.Settle(context.Background(), own...))
	got := stateOf(t, s, key)
	got.Status.Key = ""
	for i := range got.Calls {
		got.Calls[i].Key, got.Calls[i].AttemptID = "", got.Calls[i].AttemptID[len(key):]
	}
	for i := range got.History {
		got.History[i].Key, got.History[i].AttemptID = "", got.History[i].AttemptID[len(key):]
	}
	return got
}

// 32 goroutines settle contradictory verdicts through two stores, as two workers do. Every call must be kept, each
// key must have one verdict, and no caller may get an error.
func TestTwoStoresOnOneFileAgreeOnTheFirstVerdict(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "reprise.db")
	stores := []*store.Store{open(t, file), open(t, file)}
	const goroutines, keys = 32, 12
	errs := make(chan error)
	for g := range goroutines {
		go func() {
			for k := range keys {
				id := fmt.Sprintf("g%d-k%d", g, k)
				st := attempt(fmt.Sprintf("k%d", k), 0, id, finishes[g%len(finishes)], tasks.Match, g)
				st.Result = []byte(fmt.Sprintf(`{"by":%q}`, id))
				if err := stores[g%2].Settle(context.Background(), st); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range goroutines {
		require.NoError(t, <-errs)
	}
	for k := range keys {
		key := fmt.Sprintf("k%d", k)
		one, other := stateOf(t, stores[0], key), stateOf(t, stores[1], key)
		require.Equal(t, one, other)
		require.Len(t, one.Calls, goroutines)
		require.Len(t, one.History, 1)
		require.Equal(t, one.History[0].Verdict, one.Status.Verdict)
		require.Equal(t, one.History[0].Reason, one.Status.Reason)
		require.JSONEq(t, fmt.Sprintf(`{"by":%q}`, one.History[0].AttemptID), string(one.Status.Result))
	}
}
