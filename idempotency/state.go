package idempotency

import "reprise/tasks"

// State is where a send, or a key's current generation, stands.
type State string

// The closed set of states; doc.go draws how they follow each other.
const (
	Free      State = "free"      // nothing was sent in this generation
	Sent      State = "sent"      // latched: it may be on its way
	Settled   State = "settled"   // it arrived
	Rejected  State = "rejected"  // AudD said no to this content or request
	Uncertain State = "uncertain" // it may have arrived: a person decides
	Released  State = "released"  // it was not sent, or refused before work
)

// States lists every state in a stable order.
var States = []State{Free, Sent, Settled, Rejected, Uncertain, Released}

// move is what an effect does to a send.
type move struct {
	to     State
	raises bool   // the next generation may send
	remark string // goes to the audit trail: it came too late to count
}

// moves is the whole machine of what an attempt may say of its own send.
// Missing pairs change nothing. A late answer of AudD ends the doubt. A late
// "not sent" does not: somebody may have acted on the doubt, and the task was
// listed as uncertain, so a person sends it again with one command.
var moves = map[State]map[tasks.LatchEffect]move{
	Sent: {
		tasks.LatchSettled:   {to: Settled},
		tasks.LatchReleased:  {to: Released, raises: true},
		tasks.LatchRejected:  {to: Rejected},
		tasks.LatchUncertain: {to: Uncertain},
	},
	Uncertain: {
		tasks.LatchSettled:  {to: Settled},
		tasks.LatchRejected: {to: Rejected},
		tasks.LatchReleased: {to: Uncertain, remark: "late report: it was not sent"},
	},
	Settled: {
		tasks.LatchReleased: {to: Settled, remark: "late report: it was not sent"},
		tasks.LatchRejected: {to: Settled, remark: "late report: AudD rejected it"},
	},
	Released: {
		tasks.LatchSettled:   {to: Released, remark: "late report: it arrived"},
		tasks.LatchRejected:  {to: Released, remark: "late report: AudD rejected it"},
		tasks.LatchUncertain: {to: Released, remark: "late report: it may have arrived"},
	},
	Rejected: {
		tasks.LatchSettled:   {to: Rejected, remark: "late report: it arrived"},
		tasks.LatchUncertain: {to: Rejected, remark: "late report: it may have arrived"},
	},
}

// Verify is what becomes of an uncertain send.
type Verify string

// The closed set of verify policies.
const (
	VerifyHold      Verify = "hold"      // a person decides; the default
	VerifyRecognize Verify = "recognize" // one recognition may settle it
)
