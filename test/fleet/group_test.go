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

// called are the moments at which tasks of a name were called for.
func (r *rig) called(name string) []time.Time {
	var out []time.Time
	for _, q := range r.requests() {
		if strings.Contains(q.URL, "/"+name+"-") {
			out = append(out, q.At)
		}
	}
	return out
}

func TestABackfillNeverTakesMoreThanItsShareAndLiveWorkWaitsLittle(t *testing.T) {
	t.Parallel()
	// Its share is little, so that also a starved machine could take more.
	const perSecond, share = 12, 0.25
	const span = 12 * time.Second
	r := newRig(t, auddsim.Config{Limits: auddsim.Limits{Latency: 50 * time.Millisecond, Jitter: 0.5}})
	r.send("archive", "archive", 500)
	r.fleet(2, func(o *worker.Options) {
		o.Admission.Paths = map[tasks.Path]admission.Limits{tasks.Recognize: {RequestsPerMinute: 60 * perSecond}}
		o.Admission.AIMD.Off = true
		o.Admission.Groups = map[string]admission.Group{"archive": {Ceiling: share, Weight: 1}, "ugc": {Weight: 4}}
	})
	require.True(t, eventually(20*time.Second, func() bool { return len(r.called("archive")) > 10 }))
	var live []tasks.Payload
	sent := map[string]time.Time{}
	begun := time.Now()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for now := range tick.C {
		if now.Sub(begun) > span {
			break
		}
		p := r.payloads("live"+strconv.Itoa(len(live)), 1)
		sent["live"+strconv.Itoa(len(live))] = time.Now()
		r.enqueue("ugc", p...)
		live = append(live, p...)
	}
	r.allDone(live, 20*time.Second)
	backfill := r.called("archive")
	r.pace(backfill, share*perSecond, 2*slots)
	var overtaken []int // by how many calls of the backfill
	for name, at := range sent {
		calls := r.called(name)
		require.Len(t, calls, 1)
		overtaken = append(overtaken, between(backfill, at, calls[0]))
	}
	slices.Sort(overtaken)
	require.Less(t, overtaken[len(overtaken)/2], int(4*share*perSecond), "half of the live tasks wait less than it has calls in 4 s: %v", overtaken)
	require.Less(t, overtaken[len(overtaken)-1], int(15*share*perSecond), "none is starved: %v", overtaken)
	require.Greater(t, between(backfill, begun, time.Now()), len(live)/10, "and it goes on beside live work")
}

// between is how many of the moments, in order, are from one to another.
func between(at []time.Time, from, to time.Time) int {
	first, _ := slices.BinarySearchFunc(at, from, time.Time.Compare)
	last, _ := slices.BinarySearchFunc(at, to, time.Time.Compare)
	return last - first
}

// pace makes sure that in no span more calls arrived than a rate allows: one at
// its beginning, one promised ahead, and those that had their permit before
// and came late.
func (r *rig) pace(at []time.Time, perSecond float64, late int) {
	r.t.Helper()
	for i := range at {
		for j := i; j < len(at); j++ {
			span := at[j].Sub(at[i])
			if n := j - i + 1; n > int(perSecond*span.Seconds())+2+late {
				require.Failf(r.t, "too fast", "%d calls in %s", n, span)
			}
		}
	}
}

func TestAGroupsBudgetClosesItsOwnQueueOnly(t *testing.T) {
	t.Parallel()
	const limit = 10
	r := newRig(t, auddsim.Config{})
	r.send("archive", "archive", 40)
	r.fleet(2, func(o *worker.Options) {
		o.Admission.TimeZone = midday()
		o.Admission.Groups = map[string]admission.Group{"archive": {UnitsPerDay: limit}, "ugc": {}}
	})
	r.closed("recognize.archive", "auto:group_units_day", 30*time.Second)
	r.quiet("recognize.archive")
	require.Len(t, r.called("archive"), limit)
	live := r.send("ugc", "live", 30)
	r.allDone(live, 20*time.Second)
	require.False(t, r.paused("recognize.ugc"))
	require.Len(t, r.called("archive"), limit)
}

func TestAGroupSetWhileWorkersRunIsServedAndKeepsToItsSlots(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{Limits: auddsim.Limits{Latency: 100 * time.Millisecond}})
	r.fleet(2, func(o *worker.Options) { o.Admission.AIMD.Off = true })
	running := r.send("", "running", 40)
	group := admission.ScopeOfGroup("later")
	_, err := r.gates.SetLimits(t.Context(), []admission.Limit{{Scope: group, Name: "ceiling", Value: "900"}}, "test")
	require.NoError(t, err)
	first := r.send("later", "first", 10)
	r.allDone(append(first, running...), 20*time.Second)

	// A quarter of the slots: two of eight in each worker.
	_, err = r.gates.SetLimits(t.Context(), []admission.Limit{{Scope: group, Name: "slot_share", Value: "250"}}, "test")
	require.NoError(t, err)
	r.apart("recognize.later", 2)
	r.sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathRecognize})
	defer r.sim.Release("") // the workers wait for it when they stop
	second := r.send("later", "second", 60)
	beside := r.send("", "beside", 60)
	r.held(2 * (2 + slots))
	proctest.Pass(time.Second) // for those that should not come
	require.Equal(t, 2*2, r.together("second"), "calls of the group at the same moment")
	require.Equal(t, 2*slots, r.together("beside"), "the others have their own slots")
	r.sim.Release("")
	r.allDone(append(second, beside...), 30*time.Second)
	require.Equal(t, 2*2, r.together("second"))
}

// apart waits until every worker has a server for a queue alone, and one for
// all the others.
func (r *rig) apart(queue string, own int) {
	r.t.Helper()
	require.True(r.t, eventually(20*time.Second, func() bool {
		servers, err := r.inspect.Servers()
		require.NoError(r.t, err)
		alone := 0
		for _, s := range servers {
			if len(s.Queues) == 1 && s.Queues[queue] > 0 && s.Concurrency == own {
				alone++
			}
		}
		return alone == len(r.workers) && len(servers) == 2*alone
	}))
}

// together is how many calls with a name ran at the same moment, at most;
// those that still run go on until now.
func (r *rig) together(name string) int {
	type end struct {
		at time.Time
		by int
	}
	var ends []end
	for _, q := range r.requests() {
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
