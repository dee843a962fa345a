package fleet

import (
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
	r.calm() // calls that were on their way have ended
	from := time.Now()
	took, ok := turns(60*time.Second, func() bool { return len(r.since(from)) >= probes })
	require.True(t, ok)
	seen := r.since(from)
	for i := 1; i < len(seen); i++ {
		gap := seen[i].At.Sub(seen[i-1].At)
		require.GreaterOrEqual(t, gap, rest-time.Millisecond, "one probe in a cooldown, over all workers")
	}
	require.Less(t, took, 2*probes*rest, "and about one in each")
	again := func() time.Time { return r.source(mainSource).BreakerUntil }
	require.True(t, eventually(20*time.Second, func() bool { return again().After(seen[len(seen)-1].At) }))
	require.LessOrEqual(t, again(), time.Now().Add(rest), "it does not grow")
	for _, w := range r.workers {
		says := func() int { return len(w.log.Lines(shutLine, "gate", string(admission.GateBreaker))) }
		require.True(t, eventually(20*time.Second, func() bool { return says() > 0 }), "worker %s says it", w.name)
		require.Equal(t, 1, says(), "worker %s says it once", w.name)
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

// permitLife is the default; work gives it to workers that may die.
const permitLife = 12 * time.Second

func TestAProberKilledInTheMiddleOfItsProbeIsReplacedWithinItsPermitsLife(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{Rules: []auddsim.Rule{failing}})
	const rest = 2 * time.Second
	fleet := []*proctest.Process{r.process(rest), r.process(rest)}
	payloads := r.send("", "prober", 30)
	require.True(t, eventually(20*time.Second, func() bool { return r.source(mainSource).BreakerOpen }))
	r.calm() // what comes from now on are probes
	hold := r.sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathRecognize, Times: 1})
	held := r.held(1)[0]
	r.sim.RemoveRules(failing.ID)
	probe, dead := r.source(mainSource), -1
	require.True(t, eventually(10*time.Second, func() bool { // its log comes by another way than its request
		dead = slices.IndexFunc(fleet, func(p *proctest.Process) bool { return probes(p, probe.Epoch) })
		return dead >= 0
	}), "nobody says that it probes")
	fleet[dead].Kill()
	permit, err := r.gates.TaskState(t.Context(), probe.ProbeKey)
	require.NoError(t, err)
	require.True(t, permit.Probe)
	next := func() []auddsim.Request { return r.sim.Requests(auddsim.Filter{AfterSeq: held.Seq}) }
	require.True(t, eventually(permitLife, func() bool { return len(next()) > 0 || time.Now().After(permit.Until) }))
	took, ok := turns(20*time.Second, func() bool { return len(next()) > 0 })
	require.True(t, ok, "nobody probes any more")
	require.LessOrEqual(t, took, 3*time.Second, "replaced within the permit's life")
	require.False(t, next()[0].At.Before(permit.Until), "not before the permit ended")

	r.sim.Release(hold)
	alive := len(payloads) - slots // asynq gives the dead worker's tasks to others later
	require.True(t, eventually(30*time.Second, func() bool { return r.counts(recognize).Completed >= alive }), "%+v", r.counts(recognize))
	require.False(t, r.source(mainSource).BreakerOpen)
}

// probes reports whether a process said that it probes in this epoch: each
// probe that fails begins another.
func probes(p *proctest.Process, epoch int64) bool {
	return slices.ContainsFunc(p.Log.Lines("probing a source"), func(l proctest.Line) bool { return l.Number("epoch") == float64(epoch) })
}

func TestLateFailuresOfBeforeARecoveryChangeNothing(t *testing.T) {
	t.Parallel()
	late := auddsim.Rule{ID: "late", URL: "*late*", Status: http.StatusServiceUnavailable}
	r := newRig(t, auddsim.Config{Rules: []auddsim.Rule{late, failing}})
	hold := r.sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, URL: "*late*"})
	const kept = 5 // as many as open a breaker
	old := r.send("", "late", kept)
	r.fleet(2, func(o *worker.Options) {
		cooldown(time.Second)(o)
		o.Admission.Breaker.Window = time.Millisecond                      // no success counts as evidence of health
		o.SlotWait, o.Timeouts.Recognize = 10*time.Second, 100*time.Second // the held calls wait for all this
	})
	r.held(kept)
	fresh := r.send("", "fresh", 30)
	require.True(t, eventually(20*time.Second, func() bool { return r.source(mainSource).BreakerOpen }))
	r.sim.RemoveRules(failing.ID)
	require.True(t, eventually(20*time.Second, func() bool { return !r.source(mainSource).BreakerOpen }), "a probe closes it")
	epoch := r.source(mainSource).Epoch
	require.GreaterOrEqual(t, epoch, int64(2))

	require.Len(t, r.held(kept), kept)
	r.sim.RemoveRules(late.ID) // those that are held have their answer
	r.sim.Release(hold)        // and fail now, for what was before
	r.allDone(append(old, fresh...), 60*time.Second)
	failed := slices.DeleteFunc(r.requests(), func(q auddsim.Request) bool {
		return q.Status != http.StatusServiceUnavailable || !strings.Contains(q.URL, "late")
	})
	require.Len(t, failed, kept)
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
	require.EqualValues(t, 40, r.sim.Sums().HTTP429)
	for _, w := range r.workers {
		require.Empty(t, w.log.Lines(shutLine), "worker %s: throttles of a moment are no news", w.name)
	}
	r.once(payloads)
}
