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

// The log lines about a source that becomes blocked and admits calls again.
const shutLine, openLine = "source takes no calls", "source takes calls again"

// failing makes 503 the response to every call until it is removed.
var failing = auddsim.Rule{ID: "failing", Path: auddsim.PathRecognize, Status: http.StatusServiceUnavailable}

// cooldown sets the cooldown of the circuit breaker, the same after every probe.
func cooldown(d time.Duration) func(*worker.Options) {
	return func(o *worker.Options) {
		o.Admission.Breaker.Cooldown, o.Admission.Breaker.CooldownMax = d, d
	}
}

func TestFailingSourceIsBlockedForAllWorkersAndProbedOncePerCooldown(t *testing.T) {
	t.Parallel()
	const rest, probes = 2 * time.Second, 4
	f := newFleet(t, auddsim.Config{Rules: []auddsim.Rule{failing}})
	payloads := f.send("", "failing", 60)
	f.start(3, cooldown(rest))
	proctest.Eventually(t, func() bool { return f.source(mainSource).BreakerOpen })
	f.waitNoPermit() // every call admitted before has ended
	from := time.Now()
	took := turns(t, func() bool { return len(f.since(from)) >= probes })
	seen := f.since(from)
	for i := 1; i < len(seen); i++ {
		gap := seen[i].At.Sub(seen[i-1].At)
		require.GreaterOrEqual(t, gap, rest-time.Millisecond, "time between probes of all workers")
	}
	require.Less(t, took, 2*probes*rest, "time of all probes")
	again := func() time.Time { return f.source(mainSource).BreakerUntil }
	proctest.Eventually(t, func() bool { return again().After(seen[len(seen)-1].At) })
	require.LessOrEqual(t, again(), time.Now().Add(rest), "the cooldown does not grow")
	for _, w := range f.workers {
		blocked := func() int { return len(w.log.Lines(shutLine, "gate", string(admission.GateBreaker))) }
		proctest.Eventually(t, func() bool { return blocked() > 0 }, "worker %s logs it", w.name)
		require.Equal(t, 1, blocked(), "lines of worker %s", w.name)
		require.Empty(t, w.log.Lines(openLine))
	}
	probing := 0
	for _, w := range f.workers {
		probing += len(w.log.Lines("probing a source"))
	}
	require.GreaterOrEqual(t, probing, probes)

	f.Sim.RemoveRules(failing.ID)
	f.waitDone(payloads)
	require.False(t, f.source(mainSource).BreakerOpen)
	for _, w := range f.workers {
		require.Len(t, w.log.Lines(shutLine, "gate", string(admission.GateBreaker)), 1, "worker %s", w.name)
		require.Len(t, w.log.Lines(openLine), 1, "worker %s", w.name)
	}
}

// permitLife is the default lifetime of a permit; worker processes have it.
const permitLife = 12 * time.Second

func TestProbeOfAKilledWorkerIsRepeatedWhenItsPermitEnds(t *testing.T) {
	t.Parallel()
	f := newFleet(t, auddsim.Config{Rules: []auddsim.Rule{failing}})
	const rest = 2 * time.Second
	fleet := []*proctest.Process{f.process(rest), f.process(rest)}
	payloads := f.send("", "prober", 30)
	proctest.Eventually(t, func() bool { return f.source(mainSource).BreakerOpen })
	f.waitNoPermit() // the next calls are probes
	hold := f.Sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathRecognize, Times: 1})
	held := f.WaitHeld(1)[0]
	f.Sim.RemoveRules(failing.ID)
	probe, dead := f.source(mainSource), -1
	proctest.Eventually(t, func() bool { // the log may arrive after the request
		dead = slices.IndexFunc(fleet, func(p *proctest.Process) bool { return probes(p, probe.Epoch) })
		return dead >= 0
	}, "no worker logs its probe")
	fleet[dead].Kill()
	permit, err := f.gates.TaskState(t.Context(), probe.ProbeKey)
	require.NoError(t, err)
	require.True(t, permit.Probe)
	next := func() []auddsim.Request { return f.Sim.Requests(auddsim.Filter{AfterSeq: held.Seq}) }
	proctest.Eventually(t, func() bool { return len(next()) > 0 || time.Now().After(permit.Until) })
	took := turns(t, func() bool { return len(next()) > 0 }, "no worker probes any more")
	require.LessOrEqual(t, took, 3*time.Second, "time from the end of the permit to the next probe")
	require.False(t, next()[0].At.Before(permit.Until), "no probe before the permit ended")

	f.Sim.Release(hold)
	alive := len(payloads) - slots // asynq delivers the killed worker's tasks again later
	proctest.Eventually(t, func() bool { return f.Counts(recognize).Completed >= alive }, "%+v", f.show)
	require.False(t, f.source(mainSource).BreakerOpen)
}

// probes reports whether a process logged a probe in this epoch; each failed
// probe begins another epoch.
func probes(p *proctest.Process, epoch int64) bool {
	return slices.ContainsFunc(p.Log.Lines("probing a source"), func(l proctest.Line) bool { return l.Number("epoch") == float64(epoch) })
}

func TestFailuresOfCallsFromBeforeTheRecoveryDoNotOpenTheBreaker(t *testing.T) {
	t.Parallel()
	late := auddsim.Rule{ID: "late", URL: "*late*", Status: http.StatusServiceUnavailable}
	f := newFleet(t, auddsim.Config{Rules: []auddsim.Rule{late, failing}})
	hold := f.Sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, URL: "*late*"})
	const kept = 5 // as many as open a breaker
	old := f.send("", "late", kept)
	f.start(2, func(o *worker.Options) {
		cooldown(time.Second)(o)
		o.Admission.Breaker.Window = time.Millisecond                      // no success counts for the breaker
		o.SlotWait, o.Timeouts.Recognize = 10*time.Second, 100*time.Second // longer than the calls are held
	})
	f.WaitHeld(kept)
	fresh := f.send("", "fresh", 30)
	proctest.Eventually(t, func() bool { return f.source(mainSource).BreakerOpen })
	f.Sim.RemoveRules(failing.ID)
	proctest.Eventually(t, func() bool { return !f.source(mainSource).BreakerOpen }, "a probe closes it")
	epoch := f.source(mainSource).Epoch
	require.GreaterOrEqual(t, epoch, int64(2))

	require.Len(t, f.WaitHeld(kept), kept)
	f.Sim.RemoveRules(late.ID) // the held requests keep their response
	f.Sim.Release(hold)
	f.waitDone(append(old, fresh...))
	failed := slices.DeleteFunc(f.requests(), func(q auddsim.Request) bool {
		return q.Status != http.StatusServiceUnavailable || !strings.Contains(q.URL, "late")
	})
	require.Len(t, failed, kept)
	s := f.source(mainSource)
	require.Equal(t, epoch, s.Epoch, "the breaker has not changed")
	require.Zero(t, s.Failures)
	for _, w := range f.workers {
		require.LessOrEqual(t, len(w.log.Lines(shutLine, "gate", string(admission.GateBreaker))), 1)
	}
}

func TestThrottledCallsDoNotOpenTheBreaker(t *testing.T) {
	t.Parallel()
	f := newFleet(t, auddsim.Config{Rules: []auddsim.Rule{{Path: auddsim.PathRecognize, Status: http.StatusTooManyRequests, Times: 40}}})
	payloads := f.send("", "storm", 60)
	f.start(3, nil)
	f.waitDone(payloads)
	s := f.source(mainSource)
	require.False(t, s.BreakerOpen)
	require.Zero(t, s.Epoch, "the breaker has not changed")
	require.EqualValues(t, 40, f.Sim.Sums().HTTP429)
	for _, w := range f.workers {
		require.Empty(t, w.log.Lines(shutLine), "worker %s logs no short throttle", w.name)
	}
	f.requireOnce(payloads)
}
