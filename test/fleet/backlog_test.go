package fleet

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/queue/asynqkey"
	"reprise/worker"
)

// pending returns the ids of a queue's pending tasks, the next one first.
func (f *fleet) pending(queue string) []string {
	f.T.Helper()
	ids, err := f.Redis.LRange(f.T.Context(), asynqkey.Of(queue, asynqkey.Pending), 0, -1).Result()
	require.NoError(f.T, err)
	slices.Reverse(ids)
	return ids
}

// set writes a field of the gates' state, to make time pass.
func (f *fleet) set(hash, field string, value any) {
	f.T.Helper()
	require.NoError(f.T, f.Redis.HSet(f.T.Context(), admission.DefaultPrefix+hash, field, value).Err())
}

// retries describes the tasks in a queue's retry set.
func (f *fleet) retries(queue string) string {
	f.T.Helper()
	list, err := f.Inspector.ListRetryTasks(queue)
	require.NoError(f.T, err)
	var b strings.Builder
	for _, info := range list {
		fmt.Fprintf(&b, "%s in %s: %s\n", info.ID, time.Until(info.NextProcessAt).Round(time.Second), info.LastErr)
	}
	return b.String()
}

const mainState = "state:main:recognize"

func TestBacklogStaysPendingInOrderWhileEverySourceIsBlocked(t *testing.T) {
	t.Parallel()
	const backlog, workers = 20_000, 4
	const rest, tick = 10 * time.Minute, time.Millisecond // Redis stores milliseconds
	f := newFleet(t, auddsim.Config{Rules: []auddsim.Rule{retryAfter("*", "600")}})
	f.send("", "backlog", backlog)
	before := f.pending(recognize)
	require.Len(t, before, backlog)
	f.start(workers, func(o *worker.Options) { o.Slots.Recognize = 16 })
	f.waitPaused(recognize, "auto:throttle")
	f.waitQuiet(recognize)
	reason, answered, until := f.reasons(recognize).Reasons[0], f.throttled()[0].At.Add(rest), f.source(mainSource).ThrottledUntil
	require.WithinRange(t, until, answered.Add(-tick), time.Now().Add(rest), "end of the throttle")
	require.WithinRange(t, reason.Until, until.Add(-tick), time.Now().Add(rest), "end of the pause")
	require.Contains(t, reason.Evidence, mainSource)

	counts := f.Counts(recognize)
	require.LessOrEqual(t, counts.Retry+counts.Scheduled, workers*16, "only tasks from slots wait in the retry set")
	proctest.Eventually(t, func() bool {
		c := f.Counts(recognize)
		return c.Retry+c.Scheduled <= 1 // the throttled task; all other tasks are pending again
	}, "%s", func() any { return f.retries(recognize) })
	taken := f.requireOrder(before, f.pending(recognize))
	require.LessOrEqual(t, taken, workers*16+int(f.Sim.Sums().Units), "tasks that left the front of the queue")

	// An operator's pause stays when the automatic one ends.
	pauses := admission.NewPauses(f.Redis, admission.DefaultPrefix)
	_, _, err := pauses.Add(t.Context(), recognize, admission.PauseReason{Name: admission.ReasonManual, By: "test"})
	require.NoError(t, err)
	f.set(mainState, "throttled_until", 0)
	proctest.Eventually(t, func() bool { return !f.reasons(recognize).Has("auto:throttle") })
	proctest.Never(t, 1500*time.Millisecond, func() bool { return !f.paused(recognize) })
	require.True(t, f.reasons(recognize).Has(admission.ReasonManual))

	// Throttled again without an operator's pause: the queue opens within 2 s.
	f.set(mainState, "throttled_until", time.Now().Add(rest).UnixMilli())
	_, _, err = pauses.Remove(t.Context(), recognize, admission.ReasonManual)
	require.NoError(t, err)
	f.waitPaused(recognize, "auto:throttle")
	f.waitQuiet(recognize)
	left := f.pending(recognize)
	calls := len(f.requests())
	f.set(mainState, "throttled_until", 0)
	took := turns(t, func() bool { return len(f.requests()) > calls })
	require.LessOrEqual(t, took, 2*time.Second, "time until the first call")
	require.GreaterOrEqual(t, len(left), backlog-int(f.Sim.Sums().Units)-workers*16-1)
	for _, w := range f.workers {
		w.stop()
	}
}

// throttled returns the requests whose response was 429.
func (f *fleet) throttled() []auddsim.Request {
	return slices.DeleteFunc(f.requests(), func(q auddsim.Request) bool { return q.Status != http.StatusTooManyRequests })
}

// requireOrder requires that the pending list has kept its order: tasks were
// taken from its front only, and some were appended. It returns how many were taken.
func (f *fleet) requireOrder(before, after []string) (taken int) {
	f.T.Helper()
	at := make(map[string]int, len(before))
	for i, id := range before {
		at[id] = i
	}
	require.NotEmpty(f.T, after)
	taken = at[after[0]]
	for i := range len(before) - taken {
		require.Equal(f.T, before[taken+i], after[i], "the pending list keeps its order")
	}
	return taken
}
