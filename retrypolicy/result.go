package retrypolicy

import (
	"errors"
	"time"

	"reprise/audd"
	"reprise/tasks"
)

// Errors that the code around a call returns to Classify. errors.Is finds them
// at any depth of wrapping.
var (
	// ErrInputChanged is returned by the function that opens the audio if size or
	// content hash differ from what was enqueued.
	ErrInputChanged = errors.New("the audio is not what was enqueued")
	// ErrLeaseLost is returned by a BeforeBody hook if the permit or the queue's
	// lease is no longer valid: nothing was sent.
	ErrLeaseLost = errors.New("the lease was lost before anything was sent")
	// ErrStoreDown is returned by a BeforeBody hook if the ledger or the admission
	// store does not answer: nothing was sent. Other errors of a hook count as
	// this one.
	ErrStoreDown = errors.New("no store to settle in")
)

// CallResult is one finished attempt.
type CallResult struct {
	Path tasks.Path
	// Match reports whether a recognition found a song; read only if Err is nil.
	Match bool
	// Err is the error of the call, nil for a result.
	Err error
	// InputKind decides what AudD's code 501 means: no audio behind a URL, or a
	// file that is not audio.
	InputKind tasks.InputKind
	// URLSigned means that the input's URL carries a signature, so that "expired"
	// in AudD's message is about the link, not the audio.
	URLSigned bool
}

// Classified is an attempt reduced to its outcome. The zero value of every
// field but Outcome means unknown. An outcome that does not come from a call
// (refused, crash, expired …) is written as Classified{Outcome: …}.
type Classified struct {
	Outcome tasks.Outcome
	// RetryAfter is how long AudD or a gate asks to wait, 0 if it does not.
	RetryAfter time.Duration
	Code       int // AudD's code, 0 = none
	HTTPStatus int // 0 = none
	// Phase is how far the call got. A crash with PhaseUnsent is proven to have
	// happened before anything was sent.
	Phase audd.Phase
	// Latency is the duration of the call; it counts as the task's own time.
	Latency time.Duration
	// Probeable marks a block that may end by itself (code 19, a 403 without
	// JSON), so that probes are useful.
	Probeable bool
	// Reason is for display: one line of valid UTF-8 of at most 500 bytes that
	// begins with the outcome's name and contains no query of a URL.
	Reason string
}
