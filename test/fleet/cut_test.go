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

// trusted is the time for which a permit is valid after a cut: 2 s less than its
// lifetime, counted from before the request that last renewed it. No permit is
// granted until Redis is back.
const trusted = permitLife - 2*time.Second

// downEvery is the least time between two log lines about one outage.
const downEvery = 10 * time.Second

func TestRedisCutUnderLoadAdmitsNoCallWithoutAPermit(t *testing.T) {
	t.Parallel()
	const n, cut = 1500, 13 * time.Second
	f := newFleet(t, auddsim.Config{Limits: auddsim.Limits{Latency: 60 * time.Millisecond, Jitter: 0.5}})
	payloads := f.send("", "cut", n)
	f.start(2, func(o *worker.Options) {
		o.Admission.Paths = map[tasks.Path]admission.Limits{tasks.Recognize: {RequestsPerMinute: 6000, Concurrency: 2 * slots}}
		o.Admission.AIMD.Off, o.Admission.PermitTTL = true, permitLife
	})
	proctest.Eventually(t, func() bool { return f.Sim.Sums().Units >= 300 })
	f.Proxy.Cut()
	begun := time.Now()
	proctest.Pass(cut)
	restored := time.Now()
	f.Proxy.Restore()
	var during int
	for _, q := range f.since(begun) {
		if q.At.After(restored) {
			break
		}
		during++
		require.LessOrEqual(t, q.At.Sub(begun), trusted+time.Second, "a call began on a permit that is no longer valid")
	}
	require.LessOrEqual(t, during, 2*slots, "calls on permits from before the cut")
	logged := 0
	for _, w := range f.workers { // a worker logs nothing if all its slots acknowledge while Redis is cut
		lines := slices.DeleteFunc(w.log.Lines("admission does not respond; tasks wait"), func(l proctest.Line) bool { return l.At().Before(begun) })
		require.LessOrEqual(t, len(lines), 1+int(time.Since(begun)/downEvery), "lines per outage, not per task")
		logged += len(lines)
	}
	require.Positive(t, logged, "the outage is logged")

	f.waitDone(payloads)
	proctest.Eventually(t, func() bool { return f.Counts(recognize).Completed == n }, "%+v", f.show)
	require.EqualValues(t, n, f.Sim.Sums().Units, "units billed")
	sent := 0
	for _, q := range f.requests() {
		if q.BodyBytes > 0 { // a call whose permit has ended may send its head, never its body
			sent++
		}
	}
	require.Equal(t, n, sent, "one request with a body each")
	answered := map[string]int{}
	for _, c := range f.Calls(store.CallFilter{Limit: 2 * n}) {
		if c.Outcome == tasks.Match || c.Outcome == tasks.NoMatch {
			answered[c.Key]++
		}
	}
	for _, p := range payloads {
		require.Equal(t, 1, answered[p.Key], "answered calls of %s", p.Input.URL)
	}
	proctest.Eventually(t, func() bool { return f.source(mainSource).InFlight == 0 }, "every permit is released")
}
