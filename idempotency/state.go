package idempotency

import "reprise/tasks"

// State is the state of a send, or of a key's current generation.
type State string

// The closed set of states; doc.go draws the transitions.
const (
	Free      State = "free"      // nothing was sent in this generation
	Sent      State = "sent"      // latched: it may be in flight
	Settled   State = "settled"   // it arrived
	Rejected  State = "rejected"  // AudD rejected the content or the request
	Uncertain State = "uncertain" // it may have arrived: an operator decides
	Released  State = "released"  // it was not sent, or AudD refused it before any work
)

// States lists every state in a stable order.
var States = []State{Free, Sent, Settled, Rejected, Uncertain, Released}

// move is what an attempt's report does to its send.
type move struct {
	to     State
	raises bool   // the next generation may send
	remark string // the report came too late: it does not change the state, but is written to the audit trail
}

const (
	lateReleased  = "late report: the upload was not sent"
	lateRejected  = "late report: AudD rejected the upload"
	lateSettled   = "late report: the upload arrived"
	lateUncertain = "late report: the upload may have arrived"
)

// moves is the state machine of an attempt's reports about its own send. Missing pairs change nothing. A late answer of
// AudD settles an uncertain upload. A late "not sent" does not, because the task is archived as uncertain already and an
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
		tasks.LatchReleased: {remark: lateReleased},
	},
	Settled: {tasks.LatchReleased: {remark: lateReleased}, tasks.LatchRejected: {remark: lateRejected}},
	Released: {
		tasks.LatchSettled:   {remark: lateSettled},
		tasks.LatchRejected:  {remark: lateRejected},
		tasks.LatchUncertain: {remark: lateUncertain},
	},
	Rejected: {tasks.LatchSettled: {remark: lateSettled}, tasks.LatchUncertain: {remark: lateUncertain}},
}

// Verify is how an uncertain send is verified.
type Verify string

// The closed set of verify policies.
const (
	VerifyHold      Verify = "hold"      // an operator decides; the default
	VerifyRecognize Verify = "recognize" // one recognition may settle it
)
