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
	const perSecond, share = 20, 0.7
	const span = 12 * time.Second
	r := newRig(t, auddsim.Config{Limits: auddsim.Limits{Latency: 50 * time.Millisecond, Jitter: 0.5}})
	r.send("archive", "archive", 500)
	r.fleet(2, func(o *worker.Options) {
		o.Admission.Paths = map[tasks.Path]admission.Limits{tasks.Recognize: {RequestsPerMinute: 60 * perSecond}}
		o.Admission.AIMD.Off = true
		o.Admission.Groups = map[string]admission.Group{"archive": {Share: share, Weight: 1}, "ugc": {Weight: 4}}
	})
	require.True(t, eventually(20*time.Second, func() bool { return len(r.called("archive")) > 10 }))
	var live []tasks.Payload
	sent := map[string]time.Time{}
	begun := time.Now()
	tick := time.NewTicker(250 * time.Millisecond) // 4 a second
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
	var waits []time.Duration
	for name, at := range sent {
		calls := r.called(name)
		require.Len(t, calls, 1)
		waits = append(waits, calls[0].Sub(at))
	}
	slices.Sort(waits)
	require.Less(t, waits[len(waits)/2], 4*time.Second, "half of the live tasks wait less, beside a backlog of minutes: %v", waits)
	require.Less(t, waits[len(waits)-1], 15*time.Second, "none is starved: %v", waits)

	calls := r.called("archive")
	all := len(r.since(begun))
	require.LessOrEqual(t, r.most(calls, 5*time.Second), int(share*perSecond*6)+2, "in any 5 s the backfill keeps to its share")
	inSpan := 0
	for _, at := range calls {
		if at.After(begun) && at.Before(begun.Add(span)) {
			inSpan++
		}
	}
	require.GreaterOrEqual(t, inSpan, all/5, "and it goes on beside live work; %d calls in all", all)
}

// most is the highest number of moments within any span.
func (r *rig) most(at []time.Time, span time.Duration) int {
	best, from := 0, 0
	for i := range at {
		for at[i].Sub(at[from]) > span {
			from++
		}
		best = max(best, i-from+1)
	}
	return best
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
	_, err := r.gates(nil).SetLimits(t.Context(), []admission.Limit{{Scope: group, Name: "share", Value: "900"}}, "test")
	require.NoError(t, err)
	first := r.send("later", "first", 10)
	r.allDone(first, 15*time.Second)

	// A quarter of the slots: two of eight in each worker.
	_, err = r.gates(nil).SetLimits(t.Context(), []admission.Limit{{Scope: group, Name: "slot_share", Value: "250"}}, "test")
	require.NoError(t, err)
	proctest.Pass(3 * time.Second) // workers look every 2 s
	second := r.send("later", "second", 60)
	beside := r.send("", "beside", 60)
	r.allDone(append(second, beside...), 30*time.Second)
	r.allDone(running, time.Second)
	require.LessOrEqual(t, r.together("second"), 2*2, "calls of the group at the same moment")
	require.Greater(t, r.together("beside"), 2*2, "the others have their own slots")
}

// together is how many calls with a name ran at the same moment, at most.
func (r *rig) together(name string) int {
	type end struct {
		at time.Time
		by int
	}
	var ends []end
	for _, q := range r.requests() {
		if strings.Contains(q.URL, "/"+name+"-") {
			ends = append(ends, end{q.At, 1}, end{q.At.Add(q.Took), -1})
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
