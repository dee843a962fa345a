package idempotency

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

// Effect is what an attempt reports about its own send. The words are those of
// retrypolicy's latch column.
type Effect string

// The closed set of effects.
const (
	ToSettled   Effect = "settled"
	ToReleased  Effect = "released"
	ToRejected  Effect = "rejected"
	ToUncertain Effect = "uncertain"
)

// Effects lists every effect in a stable order.
var Effects = []Effect{ToSettled, ToReleased, ToRejected, ToUncertain}

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
var moves = map[State]map[Effect]move{
	Sent: {
		ToSettled:   {to: Settled},
		ToReleased:  {to: Released, raises: true},
		ToRejected:  {to: Rejected},
		ToUncertain: {to: Uncertain},
	},
	Uncertain: {
		ToSettled:  {to: Settled},
		ToRejected: {to: Rejected},
		ToReleased: {to: Uncertain, remark: "late report: it was not sent"},
	},
	Settled: {
		ToReleased: {to: Settled, remark: "late report: it was not sent"},
		ToRejected: {to: Settled, remark: "late report: AudD rejected it"},
	},
	Released: {
		ToSettled:   {to: Released, remark: "late report: it arrived"},
		ToRejected:  {to: Released, remark: "late report: AudD rejected it"},
		ToUncertain: {to: Released, remark: "late report: it may have arrived"},
	},
	Rejected: {
		ToSettled:   {to: Rejected, remark: "late report: it arrived"},
		ToUncertain: {to: Rejected, remark: "late report: it may have arrived"},
	},
}

// Verify is what becomes of an uncertain send.
type Verify string

// The closed set of verify policies.
const (
	VerifyHold      Verify = "hold"      // a person decides; the default
	VerifyRecognize Verify = "recognize" // one recognition may settle it
)
