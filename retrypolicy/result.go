package retrypolicy

import (
	"errors"
	"time"

	"reprise/audd"
	"reprise/tasks"
)

// Errors that the code around a call may return. Classify finds them at any depth of wrapping.
var (
	// ErrInputChanged means that size or content hash of the audio differ from what was enqueued.
	ErrInputChanged = errors.New("the audio is not what was enqueued")
	// ErrLeaseLost means that the permit or the lease of the queue ended before anything was sent.
	ErrLeaseLost = errors.New("the lease was lost before anything was sent")
	// ErrStoreDown means that the ledger or the admission store does not respond, and that nothing was sent.
	// Other errors of a BeforeBody hook count as this one.
	ErrStoreDown = errors.New("the store is unavailable")
)

// CallResult is the result of one attempt.
type CallResult struct {
	Path tasks.Path
	// Match means that a recognition found a song. It is read only if Err is nil.
	Match bool
	// Err is the error of the call, nil for a result.
	Err error
	// InputKind decides the meaning of AudD's code 501: no audio behind a URL, or a file that is not audio.
	InputKind tasks.InputKind
	// URLSigned means that the input's URL has a signature, so that "expired" in AudD's message is about the
	// link.
	URLSigned bool
}

// Classified is an attempt with its outcome. The zero value of every other field means unknown. For an outcome
// without a call (refused, crash, expired …) write Classified{Outcome: …}.
type Classified struct {
	Outcome tasks.Outcome
	// RetryAfter is how long AudD or a gate asks to wait, 0 if it does not.
	RetryAfter time.Duration
	Code       int // AudD's code, 0 = none
	HTTPStatus int // 0 = none
	// Phase is how far the call got. With PhaseUnsent a crash certainly happened before anything was sent.
	Phase audd.Phase
	// Latency is the duration of the call, which counts towards the give-up time.
	Latency time.Duration
	// Probeable marks a block that may end without an operator (code 19, a 403 without JSON), so that probes make
	// sense.
	Probeable bool
	// Reason is for display: one line of valid UTF-8, at most 500 bytes, that begins with the outcome's name and
	// has no URL query.
	Reason string
}
