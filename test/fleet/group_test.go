package fleet

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/tasks"
	"reprise/worker"
)

// called returns the times of the calls for tasks of a name.
func (f *fleet) called(name string) []time.Time {
	var out []time.Time
	for _, q := range f.requests() {
		if strings.Contains(q.URL, "/"+name+"-") {
			out = append(out, q.At)
		}
	}
	return out
}

func TestBackfillStaysWithinItsShareAndDoesNotDelayLiveTasks(t *testing.T) {
	t.Parallel()
	// The share is so small that even a busy machine could exceed it.
	const perSecond, share = 12, 0.25
	const span = 12 * time.Second
	f := newFleet(t, auddsim.Config{Limits: auddsim.Limits{Latency: 50 * time.Millisecond, Jitter: 0.5}})
	f.send("archive", "archive", 500)
	f.start(2, func(o *worker.Options) {
		o.Admission.Paths = map[tasks.Path]admission.Limits{tasks.Recognize: {RequestsPerMinute: 60 * perSecond}}
		o.Admission.AIMD.Off = true
		o.Admission.Groups = map[string]admission.Group{"archive": {Ceiling: share, Weight: 1}, "ugc": {Weight: 4}}
	})
	proctest.Eventually(t, func() bool { return len(f.called("archive")) > 10 })
	var live []tasks.Payload
	sent := map[string]time.Time{}
	begun := time.Now()
	for ; time.Since(begun) < span; proctest.Pass(500 * time.Millisecond) { // the rate of live work
		p := f.payloads("live"+strconv.Itoa(len(live)), 1)
		sent["live"+strconv.Itoa(len(live))] = time.Now()
		f.enqueue("ugc", p...)
		live = append(live, p...)
	}
	f.waitDone(live)
	backfill := f.called("archive")
	f.requirePace(backfill, share*perSecond, 2*slots)
	var overtaken []int // the number of backfill calls before each live call
	for name, at := range sent {
		calls := f.called(name)
		require.Len(t, calls, 1)
		overtaken = append(overtaken, between(backfill, at, calls[0]))
	}
	slices.Sort(overtaken)
	require.Less(t, overtaken[len(overtaken)/2], int(4*share*perSecond), "half of the live tasks wait for less than 4 s of backfill calls: %v", overtaken)
	require.Less(t, overtaken[len(overtaken)-1], int(15*share*perSecond), "no live task waits for long: %v", overtaken)
	require.Greater(t, between(backfill, begun, time.Now()), len(live)/10, "the backfill continues meanwhile")
}

// between returns how many of the sorted times lie between two others.
func between(at []time.Time, from, to time.Time) int {
	first, _ := slices.BinarySearchFunc(at, from, time.Time.Compare)
	last, _ := slices.BinarySearchFunc(at, to, time.Time.Compare)
	return last - first
}

// requirePace requires that no span has more calls than the rate allows, plus one
// at its beginning, one reserved ahead, and late calls with earlier permits.
func (f *fleet) requirePace(at []time.Time, perSecond float64, late int) {
	f.T.Helper()
	for i := range at {
		for j := i; j < len(at); j++ {
			span := at[j].Sub(at[i])
			if n := j - i + 1; n > int(perSecond*span.Seconds())+2+late {
				require.Failf(f.T, "too fast", "%d calls in %s", n, span)
			}
		}
	}
}

func TestBudgetOfAGroupPausesOnlyItsQueue(t *testing.T) {
	t.Parallel()
	const limit = 10
	f := newFleet(t, auddsim.Config{})
	f.send("archive", "archive", 40)
	f.start(2, func(o *worker.Options) {
		o.Admission.TimeZone = midday()
		o.Admission.Groups = map[string]admission.Group{"archive": {UnitsPerDay: limit}, "ugc": {}}
	})
	f.waitPaused("recognize.archive", "auto:group_units_day")
	f.waitQuiet("recognize.archive")
	require.Len(t, f.called("archive"), limit)
	live := f.send("ugc", "live", 30)
	f.waitDone(live)
	require.False(t, f.paused("recognize.ugc"))
	require.Len(t, f.called("archive"), limit)
}

func TestGroupAddedWhileWorkersRunIsServedWithinItsSlots(t *testing.T) {
	t.Parallel()
	f := newFleet(t, auddsim.Config{Limits: auddsim.Limits{Latency: 100 * time.Millisecond}})
	f.start(2, func(o *worker.Options) { o.Admission.AIMD.Off = true })
	running := f.send("", "running", 40)
	group := admission.ScopeOfGroup("later")
	_, err := f.gates.SetLimits(t.Context(), []admission.Limit{{Scope: group, Name: "ceiling", Value: "900"}}, "test")
	require.NoError(t, err)
	first := f.send("later", "first", 10)
	f.waitDone(append(first, running...))

	// A quarter of the slots is two of eight in each worker.
	_, err = f.gates.SetLimits(t.Context(), []admission.Limit{{Scope: group, Name: "slot_share", Value: "250"}}, "test")
	require.NoError(t, err)
	f.waitOwnServer("recognize.later", 2)
	f.Sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathRecognize})
	defer f.Sim.Release("") // workers wait for their calls when they stop
	second := f.send("later", "second", 60)
	beside := f.send("", "beside", 60)
	f.WaitHeld(2 * (2 + slots))
	proctest.Never(t, time.Second, func() bool { return f.concurrent("second") > 2*2 || f.concurrent("beside") > 2*slots })
	require.Equal(t, 2*2, f.concurrent("second"), "concurrent calls of the group")
	require.Equal(t, 2*slots, f.concurrent("beside"), "concurrent calls of other tasks")
	f.Sim.Release("")
	f.waitDone(append(second, beside...))
	require.Equal(t, 2*2, f.concurrent("second"))
}

// waitOwnServer waits until every worker has one asynq server for this queue and
// one for all other queues.
func (f *fleet) waitOwnServer(queue string, own int) {
	f.T.Helper()
	proctest.Eventually(f.T, func() bool {
		servers, err := f.Inspector.Servers()
		require.NoError(f.T, err)
		alone := 0
		for _, s := range servers {
			if len(s.Queues) == 1 && s.Queues[queue] > 0 && s.Concurrency == own {
				alone++
			}
		}
		return alone == len(f.workers) && len(servers) == 2*alone
	})
}

// concurrent returns the highest number of calls with a name that ran at the
// same time; running calls last until now.
func (f *fleet) concurrent(name string) int {
	type end struct {
		at time.Time
		by int
	}
	var ends []end
	for _, q := range f.requests() {
		if strings.Contains(q.URL, "/"+name+"-") {
			ends = append(ends, end{q.At, 1})
			if !q.Active {
				ends = append(ends, end{q.At.Add(q.Took), -1})
			}
		}
	}
	slices.SortFunc(ends, func(a, b end) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.by - b.by
	})
	now, most := 0, 0
	for _, e := range ends {
		now += e.by
		most = max(most, now)
	}
	return most
}
