package uploadcrash

import (
	"maps"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/internal/proctest"
	"reprise/internal/redistest"
)

// fault is what happens to the worker that stands at a step.
type fault struct {
	name string
	// ends is where the ledger may stand in the end for a step of a phase;
	// none = the combination means nothing.
	ends   map[phase][]idempotency.State
	meet   func(r *rig) // how the second worker comes in once the first has the task; nil: later
	happen func(r *rig, s stop)
}

var (
	yes   = []idempotency.State{idempotency.Settled}
	doubt = []idempotency.State{idempotency.Uncertain}
	maybe = []idempotency.State{idempotency.Settled, idempotency.Uncertain}
	all   = map[phase][]idempotency.State{unlatched: yes, latched: yes, sending: yes, answered: yes, concluded: yes, kept: yes, settled: yes}
)

// but changes some phases of a table.
func but(m map[phase][]idempotency.State, p phase, ends []idempotency.State) map[phase][]idempotency.State {
	out := map[phase][]idempotency.State{}
	maps.Copy(out, m)
	out[p] = ends
	return out
}

const audDCut = "AudD connection cut"

var faults = []fault{
	{name: "kill", happen: kill, ends: but(but(but(all, latched, doubt), sending, doubt), answered, doubt)},
	// A latch that waited long in a frozen worker is stale: whether it was is a matter of seconds.
	{name: "freeze", happen: freeze, ends: but(all, latched, maybe)},
	{name: "lost lease", happen: lostLease, ends: all},
	// The outbox is lost. A worker that has no answer of it for some seconds tries the store again, and does not lose what it holds.
	{name: "Redis flushed", meet: (*rig).startSecond, happen: flushed, ends: but(all, kept, maybe)},
	{name: "Redis restarted", meet: (*rig).startSecond, happen: restarted, ends: but(all, kept, maybe)},
	{name: "database locked", happen: locked, ends: all},
	{name: "Redis connections cut", happen: redisCut, ends: all},
	// Whether the worker notices the end of the connection before it writes to it is a matter of luck.
	{name: audDCut, happen: upstreamCut, ends: map[phase][]idempotency.State{unlatched: maybe, latched: maybe, sending: doubt}},
}

// kill: SIGKILL, and a fresh worker finds what is left.
func kill(r *rig, s stop) {
	r.first.Kill()
	s.drop()
	r.died()
	r.ageSends()
	r.startSecond()
}

// freeze: SIGSTOP for so long that another worker takes over, then SIGCONT.
func freeze(r *rig, s stop) {
	r.first.Signal(syscall.SIGSTOP)
	if s.yield != nil {
		s.yield()
	}
	r.died()
	r.ageSends()
	r.startSecond()
	require.True(r.t, r.hurry(patience, r.over), "the second worker does not take over")
	if s.yield == nil || !s.locks {
		s.release()
	}
	r.first.Signal(syscall.SIGCONT)
	r.first.Stop(patience)
}

// lostLease: both workers are well and both are handed the task.
func lostLease(r *rig, s stop) {
	if r.second == nil {
		r.loseLease()
	}
	r.together(s)
}

// loseLease makes a second worker take the task from the first, which is alive
// and writes its leases anew every 5 s: they are aged again and again until the
// second one, which looks for lost leases only as it starts, has taken it.
func (r *rig) loseLease() {
	var second *proctest.Process
	taken := eventually(patience, func() bool {
		n, err := redistest.CountTasks(r.t.Context(), r.rdb, queue)
		require.NoError(r.t, err)
		if second != nil && n.Active == 0 {
			return true
		}
		_, err = redistest.AgeLeases(r.t.Context(), r.rdb, queue, redistest.LeaseOver)
		require.NoError(r.t, err)
		if second == nil {
			second = r.launch("second", r.server.Addr(), r.sim.URL)
		}
		return r.seen(second)
	})
	require.True(r.t, taken, "the second worker never takes the task over")
	r.second = r.up(second)
}

// flushed: Redis forgets everything, and the task is enqueued anew.
func flushed(r *rig, s stop) {
	require.NoError(r.t, r.rdb.FlushAll(r.t.Context()).Err())
	r.enqueue()
	r.together(s)
}

// restarted: the same, and every connection is lost.
func restarted(r *rig, s stop) {
	r.server.Kill()
	r.server.Start()
	r.enqueue()
	r.together(s)
}

// together lets the second worker meet the first's upload, then the first go
// on to its end. A first that gives its step up by itself, because Redis or
// the ledger did not answer, may take the task anew before the second does.
func (r *rig) together(s stop) {
	if s.yield != nil && !s.locks {
		s.yield()
	}
	require.True(r.t, r.hurry(patience, func() bool { return r.seen(r.second) || r.seen(r.first) || r.over() }), "nobody is handed the task")
	s.release()
	r.first.Stop(patience)
	r.ageSends() // what the first did not conclude, nobody will
}

// locked: the database cannot be written for longer than anybody waits.
func locked(r *rig, s stop) {
	unlock := func() {}
	if s.yield != nil && !s.locks {
		s.yield()
	}
	if !s.locks {
		unlock = r.lock()
		s.release()
	}
	proctest.Pass(8 * time.Second)
	if s.locks {
		s.release()
	}
	unlock()
}

// redisCut: every connection to Redis ends, what was on its way is lost.
func redisCut(r *rig, s stop) {
	r.redis.cut()
	s.release()
}

// upstreamCut: the connection to AudD ends.
func upstreamCut(r *rig, s stop) {
	if s.late {
		r.upstream.shut() // the dial is refused
		require.True(r.t, eventually(patience, func() bool { return r.seen(r.first) }))
		r.upstream.open()
		return
	}
	r.upstream.cut()
	s.release()
}
