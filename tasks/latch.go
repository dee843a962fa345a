package tasks

// LatchEffect is what one attempt does to its upload's latch, the durable row
// that allows one send. Recognitions have no latch.
type LatchEffect string

// The closed set of latch effects.
const (
	LatchSettled   LatchEffect = "settled"   // the upload arrived
	LatchReleased  LatchEffect = "released"  // unsent or refused before work: the next generation may send
	LatchRejected  LatchEffect = "rejected"  // AudD rejected this content or request
	LatchUncertain LatchEffect = "uncertain" // the upload may have arrived: an operator decides
	LatchUntouched LatchEffect = "untouched" // no effect; never reported to the ledger
)
