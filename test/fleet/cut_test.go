package fleet

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/store"
	"reprise/tasks"
	"reprise/worker"
)

// A permit is trusted for 2 s less than it lives, counted from before the
// request that last confirmed it. What Redis confirmed last before a cut is
// therefore not trusted later than that into it, whoever holds it; and no new
// permit can be had until Redis is back.
const trusted = permitLife - 2*time.Second

// downEvery is the least time between two lines about one outage.
const downEvery = 10 * time.Second

func TestRedisCutUnderLoadLetsNoCallGoWithoutAPermit(t *testing.T) {
	t.Parallel()
	const n, cut = 1500, 13 * time.Second
	r := newRig(t, auddsim.Config{Limits: auddsim.Limits{Latency: 60 * time.Millisecond, Jitter: 0.5}})
	payloads := r.send("", "cut", n)
	r.fleet(2, func(o *worker.Options) {
		o.Admission.Paths = map[tasks.Path]admission.Limits{tasks.Recognize: {RequestsPerMinute: 6000, Concurrency: 2 * slots}}
		o.Admission.AIMD.Off, o.Admission.PermitTTL = true, permitLife
	})
	require.True(t, eventually(30*time.Second, func() bool { return r.sim.Sums().Units >= 300 }))
	r.proxy.Cut()
	begun := time.Now()
	proctest.Pass(cut)
	restored := time.Now()
	r.proxy.Restore()
	var during int
	for _, q := range r.since(begun) {
		if q.At.After(restored) {
			break
		}
		during++
		require.LessOrEqual(t, q.At.Sub(begun), trusted+time.Second, "a call began on a permit that nobody can trust any more")
	}
	require.LessOrEqual(t, during, 2*slots, "at most the permits that were granted before")
	for _, w := range r.workers {
		lines := slices.DeleteFunc(w.log.Lines("no call can be admitted; tasks wait"), func(l proctest.Line) bool { return l.At().Before(begun) })
		require.NotEmpty(t, lines)
		require.LessOrEqual(t, len(lines), 1+int(time.Since(begun)/downEvery), "a line now and then, not one a task")
	}

	r.allDone(payloads, 90*time.Second)
	require.True(t, eventually(30*time.Second, func() bool { return r.counts(recognize).Completed == n }), "%+v", r.counts(recognize))
	require.EqualValues(t, n, r.sim.Sums().Units, "units billed")
	sent := 0
	for _, q := range r.requests() {
		if q.BodyBytes > 0 { // the head of a call that its permit no longer covers may be seen, a body never
			sent++
		}
	}
	require.Equal(t, n, sent, "one request with a body each")
	calls, err := r.store.Calls(t.Context(), store.CallFilter{Limit: 2 * n})
	require.NoError(t, err)
	answered := map[string]int{}
	for _, c := range calls {
		if c.Outcome == tasks.Match || c.Outcome == tasks.NoMatch {
			answered[c.Key]++
		}
	}
	for _, p := range payloads {
		require.Equal(t, 1, answered[p.Key], "answered calls of %s", p.Input.URL)
	}
	require.True(t, eventually(20*time.Second, func() bool { return r.source(mainSource).InFlight == 0 }), "every permit is back")
}
