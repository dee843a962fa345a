package retrypolicy

import (
	"errors"
	"time"

	"reprise/audd"
	"reprise/tasks"
)

// Errors that the code around a call returns, so that Classify knows what they
// mean. They are found with errors.Is at any depth of wrapping.
var (
	// ErrInputChanged is what the function that opens the audio returns when
	// size or content hash differ from what was enqueued.
	ErrInputChanged = errors.New("the audio is not what was enqueued")
	// ErrLeaseLost is what a BeforeBody hook returns when the permit or the
	// queue's lease is no longer trusted: nothing was sent.
	ErrLeaseLost = errors.New("the lease was lost before anything was sent")
	// ErrStoreDown is what a BeforeBody hook returns when the ledger or the
	// admission store cannot be asked: nothing was sent. It is also what a
	// hook error that is none of these counts as.
	ErrStoreDown = errors.New("there is no safe place to settle")
)

// CallResult is what is known about one attempt once it is over.
type CallResult struct {
	Path tasks.Path
	// Match says whether a recognition found something; read when Err is nil.
	Match bool
	// Err is what the call returned, nil for an answer that is a result.
	Err error
	// InputKind decides what AudD's code 501 means: the link of a URL gave no
	// audio, or the file is not audio.
	InputKind tasks.InputKind
	// URLSigned says that the input's URL carries a signature, so that an
	// "expired" in AudD's message speaks of the link and not of the audio.
	URLSigned bool
}

// Classified is an attempt reduced to its outcome. The zero value of every
// field but Outcome means "not known"; outcomes that do not come from a call
// (refused, crash, expired, …) are written as Classified{Outcome: …}.
type Classified struct {
	Outcome tasks.Outcome
	// RetryAfter is the upstream's or a gate's own wish, 0 if there is none.
	RetryAfter time.Duration
	Code       int // AudD's code, 0 none
	HTTPStatus int // 0 none
	// Phase is how far the call got. A crash with PhaseUnsent is one that is
	// proven to have happened before anything was sent; "" is not known.
	Phase audd.Phase
	// Latency is how long the call took; Decide adds it to the time spent.
	Latency time.Duration
	// Probeable marks a block that may pass by itself (code 19, an edge's 403):
	// probe every few minutes.
	Probeable bool
	// Reason is for people: it begins with the outcome's name, is one line of
	// valid UTF-8, at most MaxReason bytes, and has no query of any URL.
	Reason string
}

// HaltScope is what an account outcome halts.
type HaltScope string

// The closed set of scopes; the zero value halts nothing.
const (
	HaltNone   HaltScope = ""
	HaltPath   HaltScope = "path"   // this source on this path
	HaltSource HaltScope = "source" // this source on every path
)
