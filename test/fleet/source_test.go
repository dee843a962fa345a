package fleet

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/store"
	"reprise/tasks"
	"reprise/worker"
)

// as sets the worker's token for the source main.
func (f *fleet) as(token string) func(*worker.Options) {
	return func(o *worker.Options) { o.Sources = []worker.Source{account(mainSource, token, f.Sim.URL)} }
}

func TestNewTokenInAStartedWorkerEndsTheAuthenticationHalt(t *testing.T) {
	t.Parallel()
	const oldToken, newToken = "old-token-1", "new-token-2"
	f := newFleet(t, auddsim.Config{Tokens: []string{oldToken, newToken}, Limits: auddsim.Limits{Latency: 20 * time.Millisecond}})
	old := f.worker(f.as(oldToken))
	f.waitDone(f.send("", "before", 10))

	f.Sim.SetToken(auddsim.Token{Value: oldToken, Code: 900})
	refused := f.send("", "refused", 60)
	f.waitPaused(recognize, "auto:halt")
	require.Equal(t, string(tasks.Authentication), f.source(mainSource).Halt)
	archived, err := f.Store.Tasks(t.Context(), store.TaskFilter{Outcome: tasks.Authentication, Replayable: true})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(archived), 3, "refusals that cause a halt")
	require.LessOrEqual(t, len(archived), 3+slots, "plus the calls that were in flight")
	require.Len(t, old.log.Lines(shutLine, "gate", "halt"), 1)
	proctest.Eventually(t, func() bool { return f.Counts(recognize).Active == 0 })
	started := time.Now()

	fresh := f.worker(f.as(newToken))
	f.waitDone(refused)
	require.Empty(t, f.source(mainSource).Halt)
	require.False(t, f.paused(recognize))
	require.Len(t, f.since(started), len(refused), "one call for each task, none with the old token")
	require.Empty(t, old.log.Lines(openLine), "the old token is not used")
	require.NotEmpty(t, fresh.log.Lines("probing a source"))

	// Both workers run. The worker with the old token takes no tasks and does not pause the queue.
	more := f.send("", "after", 60)
	f.waitDone(more)
	require.False(t, f.paused(recognize))
	require.Len(t, f.since(started), len(refused)+len(more))
}

func TestRevokingOneOfTwoTokensArchivesNoTask(t *testing.T) {
	t.Parallel()
	const first, second = "alpha-token-a", "beta-token-b" // the simulator's log shows the first and the last character
	f := newFleet(t, auddsim.Config{Limits: auddsim.Limits{Latency: 40 * time.Millisecond, Rate: 60, Burst: 5}})
	f.start(2, func(o *worker.Options) {
		o.Sources = []worker.Source{account("one", first, f.Sim.URL), account("two", second, f.Sim.URL)}
	})
	payloads := f.send("", "revoked", 200)
	proctest.Eventually(t, func() bool { return f.Sim.Sums().Units >= 60 })
	f.Sim.SetToken(auddsim.Token{Value: first, Code: 900})
	proctest.Eventually(t, func() bool { return f.source("one").Halt != "" }, "three refusals halt the source")
	proctest.Eventually(t, func() bool { return f.source("one").InFlight == 0 }, "calls in flight have ended")
	halted := time.Now()
	payloads = append(payloads, f.send("", "later", 20)...)
	f.waitDone(payloads)
	f.requireOnce(payloads)
	require.Equal(t, string(tasks.Authentication), f.source("one").Halt)
	require.Empty(t, f.source("two").Halt)
	require.Zero(t, f.Counts(recognize).Archived)
	require.NotZero(t, f.Sim.Sums().ByToken[first])
	refused := slices.DeleteFunc(f.requests(), func(q auddsim.Request) bool { return q.Code != 900 })
	require.GreaterOrEqual(t, len(refused), 3)
	require.LessOrEqual(t, len(refused), 3+2*2*slots, "one of each slot, and one more where an earlier success ended between the refusals")
	later := f.since(halted)
	require.NotEmpty(t, later)
	for _, q := range later {
		require.Equal(t, "b***b", q.Token, "all later calls use the other source")
	}
}
