package uploadcrash

import (
	"maps"
	"strings"
	"syscall"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/internal/proctest"
)

// fault is what happens to the worker that is stopped at a step.
type fault struct {
	name string
	// ends has the final states of the ledger that are right after a step of a
	// phase; a phase without an entry does not apply.
	ends   map[phase][]idempotency.State
	meet   func(u *upload) // starts the second worker while the first has the task; nil: it starts later
	happen func(u *upload, s stop)
}

var (
	yes   = []idempotency.State{idempotency.Settled}
	doubt = []idempotency.State{idempotency.Uncertain}
	maybe = []idempotency.State{idempotency.Settled, idempotency.Uncertain}
	all   = map[phase][]idempotency.State{unlatched: yes, latched: yes, sending: yes, answered: yes, concluded: yes, kept: yes, settled: yes}
)

// but returns a copy of m with other ends for a phase.
func but(m map[phase][]idempotency.State, p phase, ends []idempotency.State) map[phase][]idempotency.State {
	out := map[phase][]idempotency.State{}
	maps.Copy(out, m)
	out[p] = ends
	return out
}

const audDCut = "AudD connection cut"

var faults = []fault{
	{name: "kill", happen: kill, ends: but(but(but(all, latched, doubt), sending, doubt), answered, doubt)},
	// A latch that a frozen worker held for too long is stale; a few seconds decide.
	{name: "freeze", happen: freeze, ends: but(all, latched, maybe)},
	{name: "lost lease", happen: lostLease, ends: all},
	// The outbox is lost. A worker that waits some seconds for its reply tries the store again and keeps its settlement.
	{name: "Redis flushed", meet: (*upload).startSecond, happen: flushed, ends: but(all, kept, maybe)},
	{name: "Redis restarted", meet: (*upload).startSecond, happen: restarted, ends: but(all, kept, maybe)},
	{name: "database locked", happen: locked, ends: all},
	{name: "Redis connections cut", happen: redisCut, ends: all},
	// The worker may or may not notice the end of the connection before it writes.
	{name: audDCut, happen: upstreamCut, ends: map[phase][]idempotency.State{unlatched: maybe, latched: maybe, sending: doubt}},
}

// kill sends SIGKILL and starts another worker.
func kill(u *upload, s stop) {
	u.first.Kill()
	s.drop()
	u.expireFirst()
	u.ageSends()
	u.startSecond()
}

// freeze sends SIGSTOP, and SIGCONT after another worker has taken over.
func freeze(u *upload, s stop) {
	u.first.Signal(syscall.SIGSTOP)
	if s.yield != nil {
		s.yield()
	}
	u.expireFirst()
	u.ageSends()
	u.startSecond()
	u.hurry(u.over, "the second worker does not take over")
	if s.yield == nil || !s.locks {
		s.release()
	}
	u.first.Signal(syscall.SIGCONT)
	u.first.Stop(patience)
}

// lostLease delivers the task to a second worker while the first still runs it.
func lostLease(u *upload, s stop) {
	if u.second == nil {
		u.loseLease()
	}
	u.together(s)
}

// loseLease makes a second worker take the task from the first. The first extends
// its lease every 5 s, and the second checks for expired leases only when it
// starts, so the lease is expired repeatedly until the second worker has the task.
func (u *upload) loseLease() {
	var second *proctest.Process
	proctest.Eventually(u.T, func() bool {
		if second != nil && u.Counts(queue).Active == 0 {
			return true
		}
		u.ExpireLeases(queue)
		if second == nil {
			second = u.launch("second", u.Server.Addr(), u.Sim.URL)
		}
		return u.seen(second)
	}, "the second worker does not take the task over")
	u.second = u.ready(second)
}

// flushed empties Redis and enqueues the task again.
func flushed(u *upload, s stop) {
	require.NoError(u.T, u.Redis.FlushAll(u.T.Context()).Err())
	u.enqueue()
	u.together(s)
}

// restarted loses all data and connections of Redis and enqueues the task again.
func restarted(u *upload, s stop) {
	u.Server.Kill()
	u.Server.Start()
	u.enqueue()
	u.together(s)
}

// together delivers the task to the second worker, then lets the first worker
// continue and stop. The first worker may take the task again before the second
// does, if it gives up at its step because Redis or the ledger did not reply.
func (u *upload) together(s stop) {
	if s.yield != nil && !s.locks {
		s.yield()
	}
	u.hurry(func() bool { return u.seen(u.second) || u.seen(u.first) || u.over() }, "no worker gets the task")
	s.release()
	u.first.Stop(patience)
	u.ageSends() // the first worker concludes nothing any more
}

// locked blocks writes to the database until one of the worker has failed, or the
// task has ended without one.
func locked(u *upload, s stop) {
	unlock, before := func() {}, u.busy()
	if s.yield != nil && !s.locks {
		s.yield()
	}
	if !s.locks {
		unlock = u.LockStore("IMMEDIATE")
		s.release()
	}
	proctest.Eventually(u.T, func() bool { return u.busy() > before || u.over() }, "the worker waits for the database without an end")
	if s.locks {
		s.release()
	}
	unlock()
}

// busy returns how many writes of the first worker have failed because the database was locked.
func (u *upload) busy() int { return strings.Count(u.first.Log.String(), "SQLITE_BUSY") }

// redisCut cuts every connection to Redis; what was in flight is lost.
func redisCut(u *upload, s stop) {
	u.toRedis.cut()
	s.release()
}

// upstreamCut cuts the connection to AudD.
func upstreamCut(u *upload, s stop) {
	if s.late {
		u.toAudD.close() // the dial is refused
		proctest.Eventually(u.T, func() bool { return u.seen(u.first) })
		u.toAudD.open()
		return
	}
	u.toAudD.cut()
	s.release()
}
