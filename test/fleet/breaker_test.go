package fleet

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/worker"
)

const shutLine, openLine = "source takes no calls", "source takes calls again"

// failing is a rule that answers 503 until it is removed.
var failing = auddsim.Rule{ID: "failing", Path: auddsim.PathRecognize, Status: http.StatusServiceUnavailable}

// cooldown makes the breaker's cooldown short and the same after every probe.
func cooldown(d time.Duration) func(*worker.Options) {
	return func(o *worker.Options) {
		o.Admission.Breaker.Cooldown, o.Admission.Breaker.CooldownMax = d, d
	}
}

func TestAFailingSourceIsShutForAllWorkersAndProbedOncePerCooldown(t *testing.T) {
	t.Parallel()
	const rest, probes = 2 * time.Second, 4
	r := newRig(t, auddsim.Config{Rules: []auddsim.Rule{failing}})
	payloads := r.send("", "failing", 60)
	r.fleet(3, cooldown(rest))
	require.True(t, eventually(20*time.Second, func() bool { return r.source(mainSource).BreakerOpen }))
	proctest.Pass(time.Second) // calls that were on their way have ended
	from := time.Now()
	require.True(t, eventually(2*probes*rest+10*time.Second, func() bool { return len(r.since(from)) >= probes }))
	seen := r.since(from)
	for i := 1; i < len(seen); i++ {
		gap := seen[i].At.Sub(seen[i-1].At)
		require.GreaterOrEqual(t, gap, rest, "one probe in a cooldown, over all workers")
	}
	require.Less(t, seen[probes-1].At.Sub(seen[0].At), 2*probes*rest, "and about one in each")
	for _, w := range r.workers {
		require.Len(t, w.log.Lines(shutLine, "gate", string(admission.GateBreaker)), 1, "worker %s says it once", w.name)
		require.Empty(t, w.log.Lines(openLine))
	}
	probing := 0
	for _, w := range r.workers {
		probing += len(w.log.Lines("probing a source"))
	}
	require.GreaterOrEqual(t, probing, probes)

	r.sim.RemoveRules(failing.ID)
	r.allDone(payloads, 30*time.Second)
	require.False(t, r.source(mainSource).BreakerOpen)
	for _, w := range r.workers {
		require.Len(t, w.log.Lines(shutLine, "gate", string(admission.GateBreaker)), 1, "worker %s", w.name)
		require.Len(t, w.log.Lines(openLine), 1, "worker %s says once that it is over", w.name)
	}
}

// A permit lives 12 s and is renewed every 3 s.
const permitLife, renewal = 12 * time.Second, 3 * time.Second

func TestAProberKilledInTheMiddleOfItsProbeIsReplacedWithinItsPermitsLife(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{Rules: []auddsim.Rule{failing}})
	const rest = 2 * time.Second
	fleet := []*proctest.Process{r.process(rest), r.process(rest)}
	payloads := r.send("", "prober", 30)
	require.True(t, eventually(20*time.Second, func() bool { return r.source(mainSource).BreakerOpen }))
	proctest.Pass(time.Second)
	r.sim.RemoveRules(failing.ID)
	hold := r.sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathRecognize, Times: 1})
	r.held(1)
	held := r.sim.Held()[0]

	dead := -1
	require.True(t, eventually(10*time.Second, func() bool { // its log comes by another way than its request
		dead = slices.IndexFunc(fleet, func(p *proctest.Process) bool { return newest(p).After(held.Since.Add(-rest)) })
		return dead >= 0
	}), "nobody says that it probes")
	killed := time.Now()
	fleet[dead].Kill()
	require.True(t, eventually(permitLife+10*time.Second, func() bool { return len(r.since(killed)) > 0 }), "nobody probes any more")
	after := r.since(killed)[0].At.Sub(killed)
	require.LessOrEqual(t, after, permitLife+3*time.Second, "replaced within the permit's life")
	require.GreaterOrEqual(t, after, permitLife-renewal-time.Second, "not before the permit ended")
	require.NotEqual(t, held.Seq, r.since(killed)[0].Seq)

	r.sim.Release(hold)
	alive := len(payloads) - slots // asynq gives the dead worker's tasks to others later
	require.True(t, eventually(30*time.Second, func() bool { return r.counts(recognize).Completed == alive }), "%+v", r.counts(recognize))
	require.False(t, r.source(mainSource).BreakerOpen)
}

// newest is when a process last said that it probes.
func newest(p *proctest.Process) time.Time {
	var at time.Time
	for _, l := range p.Log.Lines("probing a source") {
		if when := l.At(); when.After(at) {
			at = when
		}
	}
	return at
}

func TestLateFailuresOfBeforeARecoveryChangeNothing(t *testing.T) {
	t.Parallel()
	late := auddsim.Rule{ID: "late", URL: "*late*", Status: http.StatusServiceUnavailable}
	early := failing
	early.Times = 5
	r := newRig(t, auddsim.Config{Rules: []auddsim.Rule{late, early}})
	hold := r.sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, URL: "*late*"})
	const kept = 5 // as many as open a breaker
	old := r.send("", "late", kept)
	r.fleet(2, func(o *worker.Options) {
		cooldown(time.Second)(o)
		o.Admission.Breaker.Window = time.Millisecond // no success counts as evidence of health
	})
	r.held(kept)
	fresh := r.send("", "fresh", 30)
	require.True(t, eventually(20*time.Second, func() bool { return r.source(mainSource).BreakerOpen }))
	require.True(t, eventually(20*time.Second, func() bool { return !r.source(mainSource).BreakerOpen }), "a probe closes it")
	epoch := r.source(mainSource).Epoch
	require.GreaterOrEqual(t, epoch, int64(2))

	r.sim.Release(hold) // the held calls fail now, for what was before
	require.True(t, eventually(10*time.Second, func() bool {
		return r.sim.Sums().Outcomes["http_503"] >= kept+int64(early.Times)
	}))
	r.sim.RemoveRules(late.ID)
	r.allDone(append(old, fresh...), 60*time.Second)
	s := r.source(mainSource)
	require.Equal(t, epoch, s.Epoch, "nothing was shut or opened")
	require.Zero(t, s.Failures)
	for _, w := range r.workers {
		require.LessOrEqual(t, len(w.log.Lines(shutLine, "gate", string(admission.GateBreaker))), 1)
	}
}

func TestAStormOfThrottlesOpensNoBreaker(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{Rules: []auddsim.Rule{{Path: auddsim.PathRecognize, Status: http.StatusTooManyRequests, Times: 40}}})
	payloads := r.send("", "storm", 60)
	r.fleet(3, nil)
	r.allDone(payloads, 90*time.Second)
	s := r.source(mainSource)
	require.False(t, s.BreakerOpen)
	require.Zero(t, s.Epoch, "nothing was ever shut but by the throttle")
	require.EqualValues(t, 40, r.sim.Sums().Throttled)
	for _, w := range r.workers {
		require.Empty(t, w.log.Lines(shutLine), "worker %s: throttles of a moment are no news", w.name)
	}
	r.once(payloads)
}
