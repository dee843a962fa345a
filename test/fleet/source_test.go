package fleet

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/auddsim"
	"reprise/store"
	"reprise/tasks"
	"reprise/worker"
)

// as gives a worker another token for the source main.
func (r *rig) as(token string) func(*worker.Options) {
	return func(o *worker.Options) { o.Sources = []worker.Source{account(mainSource, token, r.sim.URL)} }
}

func TestAWorkerWithANewTokenLiftsAnAuthenticationHalt(t *testing.T) {
	t.Parallel()
	const oldToken, newToken = "old-token-1", "new-token-2"
	r := newRig(t, auddsim.Config{Tokens: []string{oldToken, newToken}, Limits: auddsim.Limits{Latency: 20 * time.Millisecond}})
	old := r.worker(r.as(oldToken))
	r.allDone(r.send("", "before", 10), 20*time.Second)

	r.sim.Revoke(oldToken)
	refused := r.send("", "refused", 60)
	r.closed(recognize, "auto:halt", 20*time.Second)
	require.Equal(t, string(tasks.Authentication), r.source(mainSource).Halt)
	archived, err := r.store.Tasks(t.Context(), store.TaskFilter{Outcome: tasks.Authentication, Replayable: true})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(archived), 3, "as many refusals halt")
	require.LessOrEqual(t, len(archived), 3+slots, "and those that were on their way")
	require.Len(t, old.log.Lines(shutLine, "gate", "halt"), 1)
	require.True(t, eventually(10*time.Second, func() bool { return r.counts(recognize).Active == 0 }))
	started := time.Now()

	fresh := r.worker(r.as(newToken))
	r.allDone(refused, 60*time.Second)
	require.Empty(t, r.source(mainSource).Halt)
	require.False(t, r.paused(recognize))
	require.Len(t, r.since(started), len(refused), "one good call for each, none with the old token")
	require.Empty(t, old.log.Lines(openLine), "the old token still is not used")
	require.NotEmpty(t, fresh.log.Lines("probing a source"))

	// Both go on beside each other: the old worker neither takes tasks away nor
	// closes the queue again.
	more := r.send("", "after", 60)
	r.allDone(more, 20*time.Second)
	require.False(t, r.paused(recognize))
	require.Len(t, r.since(started), len(refused)+len(more))
}

func TestOfTwoTokensOneIsRevokedInTheMiddleAndNoTaskIsArchived(t *testing.T) {
	t.Parallel()
	const first, second = "alpha-token-a", "beta-token-b" // the log shows first and last character
	r := newRig(t, auddsim.Config{Limits: auddsim.Limits{Latency: 40 * time.Millisecond, Rate: 60, Burst: 5}})
	r.fleet(2, func(o *worker.Options) {
		o.Sources = []worker.Source{account("one", first, r.sim.URL), account("two", second, r.sim.URL)}
	})
	payloads := r.send("", "revoked", 200)
	require.True(t, eventually(20*time.Second, func() bool { return r.sim.Sums().Units >= 60 }))
	r.sim.Revoke(first)
	require.True(t, eventually(20*time.Second, func() bool { return r.source("one").Halt != "" }), "three refusals halt the source")
	require.True(t, eventually(20*time.Second, func() bool { return r.source("one").InFlight == 0 }), "what was on its way has ended")
	halted := time.Now()
	payloads = append(payloads, r.send("", "later", 20)...)
	r.allDone(payloads, 60*time.Second)
	r.once(payloads)
	require.Equal(t, string(tasks.Authentication), r.source("one").Halt)
	require.Empty(t, r.source("two").Halt)
	require.Zero(t, r.counts(recognize).Archived)
	require.NotZero(t, r.sim.Sums().ByToken[first])
	refused := slices.DeleteFunc(r.requests(), func(q auddsim.Request) bool { return q.Code != 900 })
	require.GreaterOrEqual(t, len(refused), 3)
	require.LessOrEqual(t, len(refused), 3+2*2*slots, "one of each slot, and one more if what was good before the revocation ended between them")
	later := r.since(halted)
	require.NotEmpty(t, later)
	for _, q := range later {
		require.Equal(t, "b***b", q.Token, "all later calls go through the other source")
	}
}
