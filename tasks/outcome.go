package tasks

import "slices"

// Outcome is the result of one attempt. Code, logs, metrics, archive reasons and documentation use the same words.
type Outcome string

// The closed set of outcomes. The table in retrypolicy/doc.go says when each one occurs and what follows.
const (
	Match             Outcome = "match"
	NoMatch           Outcome = "no_match"
	Uploaded          Outcome = "uploaded" // the success of an upload
	NotReleased       Outcome = "not_released"
	Throttled         Outcome = "throttled"
	UnavailableUnsent Outcome = "unavailable_unsent"
	Unavailable       Outcome = "unavailable"
	Ambiguous         Outcome = "ambiguous"
	InvalidAudio      Outcome = "invalid_audio"
	InvalidRequest    Outcome = "invalid_request"
	NewerPayload      Outcome = "newer_payload"
	LinkExpired       Outcome = "link_expired"
	NotFound          Outcome = "not_found"
	InputGone         Outcome = "input_gone"
	InputUnreachable  Outcome = "input_unreachable" // AudD 600: counted retries first
	InputMissing      Outcome = "input_missing"
	InputChanged      Outcome = "input_changed"
	Authentication    Outcome = "authentication"
	Quota             Outcome = "quota"
	Subscription      Outcome = "subscription"
	Blocked           Outcome = "blocked"
	Interrupted       Outcome = "interrupted"
	Refused           Outcome = "refused"
	StoreDown         Outcome = "store_down"
	Crash             Outcome = "crash"
	Expired           Outcome = "expired"
	Unknown           Outcome = "unknown"
)

// Outcomes lists every outcome in a stable order.
var Outcomes = []Outcome{
	Match, NoMatch, Uploaded, NotReleased, Throttled, UnavailableUnsent, Unavailable, Ambiguous,
	InvalidAudio, InvalidRequest, NewerPayload, LinkExpired, NotFound, InputGone, InputUnreachable,
	InputMissing, InputChanged, Authentication, Quota, Subscription, Blocked, Interrupted, Refused,
	StoreDown, Crash, Expired, Unknown,
}

// AccountOutcomes lists the outcomes with which AudD refuses an account, not a task. A task that was archived with one
// of these outcomes can be replayed when the source works again.
var AccountOutcomes = []Outcome{Authentication, Quota, Subscription, Blocked}

// RefusesAccount reports whether o is one of AccountOutcomes.
func (o Outcome) RefusesAccount() bool { return slices.Contains(AccountOutcomes, o) }

// Verdict is what the queue does next with a task.
type Verdict string

// The closed set of verdicts.
const (
	Done    Verdict = "done"    // finished, a result is stored
	Retry   Verdict = "retry"   // back to the queue after a backoff, attempt counted
	Snooze  Verdict = "snooze"  // back to the queue, no attempt counted
	Archive Verdict = "archive" // stopped, with its reason
	Hold    Verdict = "hold"    // an upload that may have arrived: an operator decides
)

// Verdicts lists every verdict in a stable order.
var Verdicts = []Verdict{Done, Retry, Snooze, Archive, Hold}

// Channel is how an attempt counts for the circuit breaker.
type Channel string

// The closed set of channels.
const (
	ChannelSuccess  Channel = "success"  // AudD answered and the account is fine
	ChannelFailure  Channel = "failure"  // AudD or the network on the way to it failed
	ChannelAccount  Channel = "account"  // AudD refused the account
	ChannelExcluded Channel = "excluded" // the call says nothing about AudD's health
	ChannelNone     Channel = "none"     // no call was made
)

// HaltScope is what an account outcome halts.
type HaltScope string

// The closed set of halt scopes.
const (
	HaltNone   HaltScope = ""       // nothing
	HaltPath   HaltScope = "path"   // the source on the path of the call
	HaltSource HaltScope = "source" // the source on every path
)

// LatchEffect is the effect of one attempt on its upload's latch, the durable row that allows one send. Recognitions
// have no latch.
type LatchEffect string

// The closed set of latch effects.
const (
	LatchSettled   LatchEffect = "settled"   // the upload arrived
	LatchReleased  LatchEffect = "released"  // unsent or refused before work: the next generation may send
	LatchRejected  LatchEffect = "rejected"  // AudD rejected this content or request
	LatchUncertain LatchEffect = "uncertain" // the upload may have arrived: an operator decides
	LatchUntouched LatchEffect = "untouched" // no effect; never reported to the ledger
)

// QuotaFull is what happens to a task when a unit budget or the account's
// quota at AudD is used up and no other source can take the task.
type QuotaFull string

// The closed set of reactions to a used-up quota.
const (
	QuotaWait     QuotaFull = "wait"      // the task waits until the quota is back; the default
	QuotaFailFast QuotaFull = "fail_fast" // the task is archived, replayable
)
