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
	"reprise/worker"
)

// pending are the ids of a queue's pending tasks, the next one first.
func (r *rig) pending(queue string) []string {
	r.t.Helper()
	ids, err := r.rdb.LRange(r.t.Context(), "asynq:{"+queue+"}:pending", 0, -1).Result()
	require.NoError(r.t, err)
	for i, j := 0, len(ids)-1; i < j; i, j = i+1, j-1 {
		ids[i], ids[j] = ids[j], ids[i]
	}
	return ids
}

// set writes a field of the gates' state, as if time had passed.
func (r *rig) set(hash, field string, value any) {
	r.t.Helper()
	require.NoError(r.t, r.rdb.HSet(r.t.Context(), admission.DefaultPrefix+hash, field, value).Err())
}

// retrying tells what waits in a queue's retry set, for people.
func (r *rig) retrying(queue string) string {
	r.t.Helper()
	list, err := r.inspect.ListRetryTasks(queue)
	require.NoError(r.t, err)
	var b strings.Builder
	for _, info := range list {
		fmt.Fprintf(&b, "%s in %s: %s\n", info.ID, time.Until(info.NextProcessAt).Round(time.Second), info.LastErr)
	}
	return b.String()
}

const mainState = "state:main:recognize"

func TestTwentyThousandTasksStayPendingInOrderWhileEverySourceIsShut(t *testing.T) {
	t.Parallel()
	const backlog, workers = 20_000, 4
	const rest, tick = 10 * time.Minute, time.Millisecond // Redis counts in ticks
	r := newRig(t, auddsim.Config{Rules: []auddsim.Rule{retryAfter("*", "600")}})
	r.send("", "backlog", backlog)
	before := r.pending(recognize)
	require.Len(t, before, backlog)
	r.fleet(workers, func(o *worker.Options) { o.Slots.Recognize = 16 })
	r.closed(recognize, "auto:throttle", 30*time.Second)
	r.quiet(recognize)
	reason, asked, shut := r.reasons(recognize).Reasons[0], r.throttled()[0].At.Add(rest), r.source(mainSource).ThrottledUntil
	require.WithinRange(t, shut, asked.Add(-tick), time.Now().Add(rest), "as long as asked")
	require.WithinRange(t, reason.Until, shut.Add(-tick), time.Now().Add(rest), "and the queue with it")
	require.Contains(t, reason.Evidence, mainSource)

	counts := r.counts(recognize)
	require.LessOrEqual(t, counts.Retry+counts.Scheduled, workers*16, "at most what was in slots waits in the retry set")
	require.True(t, eventually(20*time.Second, func() bool {
		c := r.counts(recognize)
		return c.Retry+c.Scheduled <= 1 // the throttled one; the others came back
	}), "%s", r.retrying(recognize))
	taken := r.inOrder(before, r.pending(recognize))
	require.LessOrEqual(t, taken, workers*16+int(r.sim.Sums().Units), "tasks that left the front of the queue")

	// A person's pause on top stays when the automatic one goes.
	pauses := r.gates.Pauses()
	_, _, err := pauses.Add(t.Context(), recognize, admission.PauseReason{Name: admission.ReasonManual, By: "test"})
	require.NoError(t, err)
	r.set(mainState, "throttled_until", 0)
	require.True(t, eventually(5*time.Second, func() bool { return !r.reasons(recognize).Has("auto:throttle") }))
	proctest.Pass(1500 * time.Millisecond)
	require.True(t, r.paused(recognize))
	require.True(t, r.reasons(recognize).Has(admission.ReasonManual))

	// Shut once more, with nobody's pause in the way: opening starts within 2 s.
	r.set(mainState, "throttled_until", time.Now().Add(rest).UnixMilli())
	_, _, err = pauses.Remove(t.Context(), recognize, admission.ReasonManual)
	require.NoError(t, err)
	r.closed(recognize, "auto:throttle", 10*time.Second)
	r.quiet(recognize)
	left := r.pending(recognize)
	calls := len(r.requests())
	r.set(mainState, "throttled_until", 0)
	took, started := turns(20*time.Second, func() bool { return len(r.requests()) > calls })
	require.True(t, started)
	require.LessOrEqual(t, took, 2*time.Second, "opening starts within 2 s")
	require.GreaterOrEqual(t, len(left), backlog-int(r.sim.Sums().Units)-workers*16-1)
	for _, w := range r.workers {
		w.stop()
	}
}

// throttled are the requests that were answered with 429.
func (r *rig) throttled() []auddsim.Request {
	return slices.DeleteFunc(r.requests(), func(q auddsim.Request) bool { return q.Status != http.StatusTooManyRequests })
}

// inOrder makes sure that the pending list is what it was, less what was taken
// from its front, plus what came back to its end; it returns how many were
// taken.
func (r *rig) inOrder(before, after []string) (taken int) {
	r.t.Helper()
	at := make(map[string]int, len(before))
	for i, id := range before {
		at[id] = i
	}
	require.NotEmpty(r.t, after)
	taken = at[after[0]]
	for i := range len(before) - taken {
		require.Equal(r.t, before[taken+i], after[i], "the pending list keeps its order")
	}
	return taken
}
