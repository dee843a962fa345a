package idempotency

import "reprise/tasks"

// State is the state of a send or of a key's current generation.
type State string

// The closed set of states; doc.go draws how they follow each other.
const (
	Free      State = "free"      // nothing was sent in this generation
	Sent      State = "sent"      // latched: it may be in flight
	Settled   State = "settled"   // it arrived
	Rejected  State = "rejected"  // AudD rejected this content or request
	Uncertain State = "uncertain" // it may have arrived: an operator decides
	Released  State = "released"  // it was not sent, or refused before work
)

// States lists every state in a stable order.
var States = []State{Free, Sent, Settled, Rejected, Uncertain, Released}

// move is what an effect does to a send.
type move struct {
	to     State
	raises bool   // the next generation may send
	remark string // for the audit trail: the report came too late to count
}

// moves is the state machine of an attempt's reports about its own send. Missing
// pairs change nothing. A late answer of AudD settles an uncertain upload. A late
// "not sent" does not, because the task is already archived as uncertain and an
// operator may have acted on it.
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

// Verify is how an uncertain send is verified.
type Verify string

// The closed set of verify policies.
const (
	VerifyHold      Verify = "hold"      // an operator decides; the default
	VerifyRecognize Verify = "recognize" // one recognition may settle it
)
