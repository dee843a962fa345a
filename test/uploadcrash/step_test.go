package uploadcrash

import (
	"time"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
)

// phase says what the ledger knows at a step.
type phase int

const (
	unlatched phase = iota // nothing may have left
	latched                // the latch is on the disk, nothing has left
	sending                // bytes have left, no answer has come
	answered               // AudD said yes, nobody wrote it down
	concluded              // the ledger knows
	kept                   // the outbox knows, SQL does not
	settled                // SQL knows
)

// stop is a worker that stands at a step.
type stop struct {
	near    func() // until it is near; nil: no such place. Later no other worker could start.
	wait    func() // until it stands there
	release func() // it goes on
	drop    func() // what it waits for never comes (it is dead)
	yield   func() // let others work while it stands; nil: they can
	locks   bool   // it stands because the test holds the database
	late    bool   // AudD accepts no connection yet
}

// step is a place in an upload at which the worker is made to stand.
type step struct {
	name  string
	phase phase
	late  bool // AudD accepts connections only when the step is released
	size  int  // of the audio; 0 = small
	halt  func(r *rig) stop
}

const big = 12 << 20 // more than the buffers between worker and simulator

var (
	acquire   = func(r *rig) func(passing) bool { return containing("reprise:{adm}:state:global", r.task.Key) }
	readMark  = containing("reprise:{ledger}:mark", "hgetall")
	writeMark = without(containing("reprise:{ledger}:mark"), "hgetall")
	putOutbox = func(r *rig) func(passing) bool {
		return containing("reprise:{adm}:outbox", r.task.Key, "eval")
	}
	asynqsDone = containing("asynq:{upload}:lease", "asynq:{upload}:completed")
)

var steps = []step{
	{name: "before admission", phase: unlatched, halt: func(r *rig) stop { return atRedis(r, acquire(r), false) }},
	{name: "admitted", phase: unlatched, halt: func(r *rig) stop { return atRedis(r, acquire(r), true) }},
	{name: "dialling", phase: unlatched, late: true, halt: dialling},
	{name: "connected", phase: unlatched, halt: func(r *rig) stop { return atRedis(r, readMark, false) }},
	{name: "waiting for the latch", phase: unlatched, halt: waitingForLatch},
	{name: "latched", phase: latched, halt: func(r *rig) stop { return atRedis(r, writeMark, false) }},
	{name: "latch remembered", phase: latched, halt: func(r *rig) stop { return atRedis(r, writeMark, true) }},
	{name: "first byte", phase: sending, halt: func(r *rig) stop { return atAudD(r, bodyBegan, false) }},
	{name: "half the body", phase: sending, size: big, halt: func(r *rig) stop { return atAudD(r, moreThan(big/2), false) }},
	{name: "body not read", phase: sending, halt: bodyNotRead},
	{name: "whole body", phase: sending, halt: func(r *rig) stop { return inSimulator(r, auddsim.StageAfterBody) }},
	{name: "before the answer", phase: sending, halt: func(r *rig) stop { return inSimulator(r, auddsim.StageBeforeAnswer) }},
	{name: "answer on its way", phase: sending, halt: func(r *rig) stop { return atAudD(r, bodyBegan, true) }},
	{name: "answered, database locked", phase: answered, halt: settling},
	{name: "ledger written, store not", phase: concluded, halt: betweenLedgerAndStore},
	{name: "in the outbox only", phase: kept, halt: inOutbox},
	{name: "before the ack", phase: settled, halt: func(r *rig) stop { return atRedis(r, asynqsDone, false) }},
	{name: "acked", phase: settled, halt: func(r *rig) stop { return atRedis(r, asynqsDone, true) }},
}

// reached fails the test if a hold is not reached in time.
func (r *rig) reached(h *hold) {
	r.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-h.reached:
	case <-timer.C:
		require.Fail(r.t, "the worker never came to the step")
	}
}

func at(r *rig, g *gate, match func(passing) bool, reply bool) stop {
	h := g.hold(match, reply)
	return stop{
		wait:    func() { r.reached(h) },
		release: func() { g.release(h) },
		drop:    func() { g.drop(h) },
	}
}

func atRedis(r *rig, match func(passing) bool, reply bool) stop { return at(r, r.redis, match, reply) }

func atAudD(r *rig, match func(passing) bool, reply bool) stop {
	return at(r, r.upstream, match, reply)
}

func inSimulator(r *rig, stage string) stop {
	hold := r.sim.Hold(auddsim.Hold{Stage: stage, Path: auddsim.PathUpload, Times: 1})
	release := func() { r.sim.Release(hold) }
	return stop{
		wait:    func() { require.True(r.t, eventually(patience, func() bool { return len(r.sim.Held()) > 0 })) },
		release: release, drop: release,
	}
}

// bodyNotRead: body bytes have left the worker, and the simulator, which has
// the request's head, reads none.
func bodyNotRead(r *rig) stop {
	s, h := inSimulator(r, auddsim.StageBeforeBody), r.upstream.holdRequest(bodyBegan)
	wait := s.wait
	s.wait = func() {
		wait()
		r.reached(h)
		r.upstream.release(h)
	}
	return s
}

// dialling: the permit is granted, and the connection cannot be made.
func dialling(r *rig) stop {
	return stop{
		wait:    func() { require.True(r.t, eventually(patience, r.permitted)) },
		release: r.upstream.serveLate,
		drop:    func() { r.upstream.shut() },
	}
}

// waitingForLatch: the hook waits for the database's write lock.
func waitingForLatch(r *rig) stop {
	h := r.redis.holdReply(readMark)
	var unlock func()
	release := func() { unlock() }
	return stop{
		near: func() { r.reached(h) },
		wait: func() {
			unlock = r.lock()
			r.redis.release(h)
			proctest.Pass(300 * time.Millisecond) // from the answer to the wait nothing can be seen from outside
			require.Equal(r.t, idempotency.Free, r.look().State)
		},
		release: release, drop: release, yield: release, locks: true,
	}
}

// settling: AudD said yes and the database is locked. The outbox does not hear
// of it either, however long the worker stands.
func settling(r *rig) stop {
	s, h := answeredAndLocked(r), r.redis.holdRequest(putOutbox(r))
	unlock := s.release
	s.release = func() { r.redis.release(h); unlock() }
	s.drop = func() { r.redis.drop(h); unlock() }
	s.yield = s.release
	return s
}

func answeredAndLocked(r *rig) stop {
	hold := r.sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathUpload, Times: 1})
	var unlock func()
	release := func() { unlock() }
	return stop{
		near: func() { require.True(r.t, eventually(patience, func() bool { return len(r.sim.Held()) > 0 })) },
		wait: func() {
			unlock = r.lock()
			r.sim.Release(hold)
			require.True(r.t, eventually(patience, func() bool { return r.sim.Bill().Upload(audioID).Complete == 1 }))
			proctest.Pass(300 * time.Millisecond) // as in waitingForLatch
		},
		release: release, drop: release, yield: release, locks: true,
	}
}

// betweenLedgerAndStore: the store refuses the settlement, the ledger has its
// part, and the outbox does not hear of it.
func betweenLedgerAndStore(r *rig) stop {
	r.exec(`CREATE TRIGGER no_result BEFORE INSERT ON result BEGIN SELECT RAISE(ABORT, 'refused by the test'); END`)
	mend := func() { r.exec(`DROP TRIGGER IF EXISTS no_result`) }
	s := atRedis(r, putOutbox(r), false)
	release, drop := s.release, s.drop
	s.release = func() { mend(); release() }
	s.drop = func() { mend(); drop() }
	s.yield = mend // the others' results are taken
	return s
}

// inOutbox: the database is locked for longer than anybody waits, and the
// outbox has the settlement.
func inOutbox(r *rig) stop {
	s, h := answeredAndLocked(r), r.redis.holdReply(putOutbox(r))
	wait, unlock := s.wait, s.yield
	s.wait = func() { wait(); r.reached(h); unlock() }
	s.release = func() { r.redis.release(h) }
	s.drop = func() { r.redis.drop(h) }
	s.yield, s.locks = nil, false
	return s
}
