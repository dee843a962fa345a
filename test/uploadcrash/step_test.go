package uploadcrash

import (
	"time"

	"reprise/idempotency"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/queue/asynqkey"
)

// phase is the progress of an upload at a step.
type phase int

const (
	unlatched phase = iota // no byte may be sent
	latched                // the latch is durable, no byte is sent
	sending                // bytes are sent, no response has arrived
	answered               // AudD has accepted, nothing is stored
	concluded              // the ledger has the result
	kept                   // the outbox has the settlement, SQL does not
	settled                // SQL has the settlement
)

// stop controls a worker that is stopped at a step.
type stop struct {
	near    func() // waits until the worker is near the step, the last moment at which another worker can start; nil: there is none
	wait    func() // waits until the worker is at the step
	release func() // lets the worker continue
	drop    func() // drops what a killed worker waited for
	yield   func() // lets other workers work meanwhile; nil: they can
	locks   bool   // the worker waits because the test locks the database
	late    bool   // AudD accepts no connection yet
}

// step is a point of an upload at which the worker is stopped.
type step struct {
	name  string
	phase phase
	late  bool // AudD accepts connections only when the step is released
	size  int  // bytes of audio; 0 = small
	halt  func(u *upload) stop
}

const big = 12 << 20 // more than the buffers between worker and simulator

var (
	acquire   = func(u *upload) func(passing) bool { return containing("reprise:{adm}:state:global", u.task.Key) }
	readMark  = containing("reprise:{ledger}:mark", "hgetall")
	writeMark = without(containing("reprise:{ledger}:mark"), "hgetall")
	putOutbox = func(u *upload) func(passing) bool {
		return containing("reprise:{adm}:outbox", u.task.Key, "eval")
	}
	complete = containing(asynqkey.Of(queue, asynqkey.Lease), asynqkey.Of(queue, asynqkey.Completed)) // asynq's script
)

var steps = []step{
	{name: "before admission", phase: unlatched, halt: func(u *upload) stop { return atRedis(u, acquire(u), false) }},
	{name: "admitted", phase: unlatched, halt: func(u *upload) stop { return atRedis(u, acquire(u), true) }},
	{name: "dialling", phase: unlatched, late: true, halt: dialling},
	{name: "connected", phase: unlatched, halt: func(u *upload) stop { return atRedis(u, readMark, false) }},
	{name: "waiting for the latch", phase: unlatched, halt: waitingForLatch},
	{name: "latched", phase: latched, halt: func(u *upload) stop { return atRedis(u, writeMark, false) }},
	{name: "latch remembered", phase: latched, halt: func(u *upload) stop { return atRedis(u, writeMark, true) }},
	{name: "first byte", phase: sending, halt: func(u *upload) stop { return atAudD(u, bodyBegan, false) }},
	{name: "half the body", phase: sending, size: big, halt: func(u *upload) stop { return atAudD(u, moreThan(big/2), false) }},
	{name: "body not read", phase: sending, halt: bodyNotRead},
	{name: "whole body", phase: sending, halt: func(u *upload) stop { return inSimulator(u, auddsim.StageAfterBody) }},
	{name: "before the response", phase: sending, halt: func(u *upload) stop { return inSimulator(u, auddsim.StageBeforeAnswer) }},
	{name: "response on its way", phase: sending, halt: func(u *upload) stop { return atAudD(u, bodyBegan, true) }},
	{name: "answered, database locked", phase: answered, halt: settling},
	{name: "ledger written, store not", phase: concluded, halt: betweenLedgerAndStore},
	{name: "in the outbox only", phase: kept, halt: inOutbox},
	{name: "before the ack", phase: settled, halt: func(u *upload) stop { return atRedis(u, complete, false) }},
	{name: "acked", phase: settled, halt: func(u *upload) stop { return atRedis(u, complete, true) }},
}

// reached waits until something is held.
func (u *upload) reached(h *hold) {
	u.T.Helper()
	proctest.Receive(u.T, h.reached, "the worker does not reach the step")
}

func at(u *upload, g *gate, match func(passing) bool, reply bool) stop {
	h := g.hold(match, reply)
	return stop{
		wait:    func() { u.reached(h) },
		release: func() { g.release(h) },
		drop:    func() { g.drop(h) },
	}
}

func atRedis(u *upload, match func(passing) bool, reply bool) stop {
	return at(u, u.toRedis, match, reply)
}

func atAudD(u *upload, match func(passing) bool, reply bool) stop {
	return at(u, u.toAudD, match, reply)
}

func inSimulator(u *upload, stage string) stop {
	hold := u.Sim.Hold(auddsim.Hold{Stage: stage, Path: auddsim.PathUpload, Times: 1})
	release := func() { u.Sim.Release(hold) }
	return stop{
		wait:    func() { proctest.Eventually(u.T, func() bool { return len(u.Sim.Held()) > 0 }) },
		release: release, drop: release,
	}
}

// bodyNotRead: the worker has sent body bytes; the simulator has read the head of
// the request only.
func bodyNotRead(u *upload) stop {
	s, h := inSimulator(u, auddsim.StageBeforeBody), u.toAudD.hold(bodyBegan, false)
	wait := s.wait
	s.wait = func() {
		wait()
		u.reached(h)
		u.toAudD.release(h)
	}
	return s
}

// dialling: the worker has its permit and gets no connection.
func dialling(u *upload) stop {
	return stop{
		wait:    func() { proctest.Eventually(u.T, u.permitted) },
		release: u.toAudD.serveLate,
		drop:    func() { u.toAudD.close() },
	}
}

// waitingForLatch: the hook waits for the database's write lock.
func waitingForLatch(u *upload) stop {
	h := u.toRedis.hold(readMark, true)
	var unlock func()
	release := func() { unlock() }
	return stop{
		near: func() { u.reached(h) },
		wait: func() {
			unlock = u.LockStore("IMMEDIATE")
			u.toRedis.release(h)
			// No state shows that the worker waits for the lock.
			proctest.Never(u.T, 300*time.Millisecond, func() bool { return u.ledgerEntry().State != idempotency.Free })
		},
		release: release, drop: release, yield: release, locks: true,
	}
}

// settling: AudD has accepted and the database is locked. The outbox gets no
// settlement either, however long the worker waits.
func settling(u *upload) stop {
	s, h := answeredAndLocked(u), u.toRedis.hold(putOutbox(u), false)
	unlock := s.release
	s.release = func() { u.toRedis.release(h); unlock() }
	s.drop = func() { u.toRedis.drop(h); unlock() }
	s.yield = s.release
	return s
}

func answeredAndLocked(u *upload) stop {
	hold := u.Sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, Path: auddsim.PathUpload, Times: 1})
	var unlock func()
	release := func() { unlock() }
	return stop{
		near: func() { proctest.Eventually(u.T, func() bool { return len(u.Sim.Held()) > 0 }) },
		wait: func() {
			unlock = u.LockStore("IMMEDIATE")
			u.Sim.Release(hold)
			proctest.Eventually(u.T, func() bool { return u.Sim.Bill().Upload(audioID).Complete == 1 })
			// No state shows that the worker waits for the lock.
			proctest.Never(u.T, 300*time.Millisecond, func() bool { return u.ledgerEntry().State != idempotency.Sent })
		},
		release: release, drop: release, yield: release, locks: true,
	}
}

// betweenLedgerAndStore: the ledger has its part, the store refuses the
// settlement, and the outbox gets none.
func betweenLedgerAndStore(u *upload) stop {
	u.exec(`CREATE TRIGGER no_result BEFORE INSERT ON result BEGIN SELECT RAISE(ABORT, 'refused by the test'); END`)
	restore := func() { u.exec(`DROP TRIGGER IF EXISTS no_result`) }
	s := atRedis(u, putOutbox(u), false)
	release, drop := s.release, s.drop
	s.release = func() { restore(); release() }
	s.drop = func() { restore(); drop() }
	s.yield = restore // other workers can store results
	return s
}

// inOutbox: the database was locked for longer than every timeout, and the outbox
// has the settlement.
func inOutbox(u *upload) stop {
	s, h := answeredAndLocked(u), u.toRedis.hold(putOutbox(u), true)
	wait, unlock := s.wait, s.yield
	s.wait = func() { wait(); u.reached(h); unlock() }
	s.release = func() { u.toRedis.release(h) }
	s.drop = func() { u.toRedis.drop(h) }
	s.yield, s.locks = nil, false
	return s
}
