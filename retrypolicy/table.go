package retrypolicy

import "reprise/tasks"

// pause says what a task waits for between two deliveries.
type pause string

const (
	pauseNone        pause = "–"
	pauseAtOnce      pause = "at once"
	pauseBackoff     pause = "backoff"      // Policy.Backoff, or Retry-After if that is later
	pausePushback    pause = "pushback"     // Policy.Pushback
	pauseUnreachable pause = "1, 5, 15 min" // Policy.UnreachableWaits
	pauseInterrupted pause = "1 s"          // Policy.InterruptedWait
	pauseNewer       pause = "1 min"        // Policy.NewerPayloadWait
	pauseStore       pause = "5 s doubling" // Policy.StoreDownWait
	pauseGate        pause = "the gate's"   // Classified.RetryAfter
	pauseQuota       pause = "quota_full"   // Policy.QuotaFull: wait 1 min, or archive
)

// units says what becomes of the reserved units.
type units string

const (
	unitsKept     units = "kept"
	unitsRefunded units = "refunded"
	unitsByCode   units = "by code" // kept if AudD itself answered with a code, refunded if its edge did
)

// row is what follows from one outcome.
type row struct {
	outcome   tasks.Outcome
	when      string        // for people; doc.go repeats it
	verdict   tasks.Verdict // of a recognition
	upload    tasks.Verdict // of an upload
	pause     pause         // of the verdicts retry and snooze
	counted   bool          // charges max_attempts
	billed    bool          // charges max_possibly_billed
	units     units
	channel   tasks.Channel
	halt      HaltScope // what one answer halts
	haltAfter int       // what that many equal answers in a row halt, 0 = never
	shuts     bool      // a Retry-After shuts source and path
	other     bool      // another usable source may be tried in this delivery
	final     bool      // an archive is a tombstone
	alert     bool
	latch     tasks.LatchEffect // of an upload
}

// table is section "outcome → verdict" of the specification, every word of it
// that is not arithmetic. doc.go shows the same rows; a test compares them.
var table = []row{
	{outcome: tasks.Match, when: "a song was found; code 51 with a song", verdict: tasks.Done, upload: tasks.Done, pause: pauseNone,
		units: unitsKept, channel: tasks.ChannelSuccess, latch: tasks.LatchSettled},
	{outcome: tasks.NoMatch, when: "no song was found; code 51 with a null result", verdict: tasks.Done, upload: tasks.Done, pause: pauseNone,
		units: unitsKept, channel: tasks.ChannelSuccess, latch: tasks.LatchSettled},
	{outcome: tasks.Uploaded, when: "the upload was accepted", verdict: tasks.Done, upload: tasks.Done, pause: pauseNone,
		units: unitsKept, channel: tasks.ChannelSuccess, latch: tasks.LatchSettled},
	{outcome: tasks.NotReleased, when: "code 907 (to an upload: unknown)", verdict: tasks.Done, upload: tasks.Archive, pause: pauseNone,
		units: unitsKept, channel: tasks.ChannelSuccess, latch: tasks.LatchRejected},

	{outcome: tasks.Throttled, when: "HTTP 429, code 611", verdict: tasks.Snooze, upload: tasks.Snooze, pause: pausePushback,
		units: unitsRefunded, channel: tasks.ChannelExcluded, shuts: true, latch: tasks.LatchReleased},
	{outcome: tasks.UnavailableUnsent, when: "DNS, dial, TLS or proxy failure", verdict: tasks.Retry, upload: tasks.Retry, pause: pauseBackoff,
		counted: true, units: unitsRefunded, channel: tasks.ChannelFailure, latch: tasks.LatchReleased},
	{outcome: tasks.Unavailable, when: "HTTP 5xx, 408, code 100", verdict: tasks.Retry, upload: tasks.Hold, pause: pauseBackoff,
		counted: true, billed: true, units: unitsKept, channel: tasks.ChannelFailure, shuts: true, latch: tasks.LatchUncertain},
	{outcome: tasks.Ambiguous, when: "sent, but no readable answer", verdict: tasks.Retry, upload: tasks.Hold, pause: pauseBackoff,
		counted: true, billed: true, units: unitsKept, channel: tasks.ChannelFailure, latch: tasks.LatchUncertain},

	{outcome: tasks.InvalidAudio, when: "code 300, 400, 500, 501 (file)", verdict: tasks.Archive, upload: tasks.Archive, pause: pauseNone,
		units: unitsKept, channel: tasks.ChannelSuccess, final: true, latch: tasks.LatchRejected},
	{outcome: tasks.InvalidRequest, when: "code 50, 51, 601–602, 700–702, 906, 1000, HTTP 400/413/414/415, bad payload", verdict: tasks.Archive, upload: tasks.Archive, pause: pauseNone,
		units: unitsByCode, channel: tasks.ChannelSuccess, final: true, latch: tasks.LatchRejected},
	{outcome: tasks.InputUnreachable, when: "code 600; then invalid_request", verdict: tasks.Retry, upload: tasks.Retry, pause: pauseUnreachable,
		counted: true, units: unitsKept, channel: tasks.ChannelSuccess, latch: tasks.LatchReleased},
	{outcome: tasks.InputGone, when: "code 501 (URL), 600 with deleted or expired", verdict: tasks.Archive, upload: tasks.Archive, pause: pauseNone,
		units: unitsKept, channel: tasks.ChannelExcluded, final: true, latch: tasks.LatchRejected},
	{outcome: tasks.InputMissing, when: "file or spool object not there; 3 in a row", verdict: tasks.Retry, upload: tasks.Retry, pause: pauseBackoff,
		counted: true, units: unitsRefunded, channel: tasks.ChannelExcluded, latch: tasks.LatchReleased},
	{outcome: tasks.InputChanged, when: "content is not what was enqueued", verdict: tasks.Archive, upload: tasks.Archive, pause: pauseNone,
		units: unitsRefunded, channel: tasks.ChannelExcluded, latch: tasks.LatchReleased},
	{outcome: tasks.LinkExpired, when: "a signed URL past its expiry", verdict: tasks.Archive, upload: tasks.Archive, pause: pauseNone,
		units: unitsByCode, channel: tasks.ChannelNone, latch: tasks.LatchReleased},
	{outcome: tasks.NotFound, when: "HTTP 404, 3xx", verdict: tasks.Archive, upload: tasks.Archive, pause: pauseNone,
		units: unitsRefunded, channel: tasks.ChannelExcluded, haltAfter: 5, latch: tasks.LatchReleased},

	{outcome: tasks.Authentication, when: "code 900, 901, 903, HTTP 401, 403 in JSON", verdict: tasks.Archive, upload: tasks.Archive, pause: pauseNone,
		units: unitsRefunded, channel: tasks.ChannelAccount, haltAfter: 3, other: true, alert: true, latch: tasks.LatchReleased},
	{outcome: tasks.Quota, when: "code 902", verdict: tasks.Archive, upload: tasks.Archive, pause: pauseQuota,
		units: unitsRefunded, channel: tasks.ChannelAccount, halt: HaltPath, shuts: true, other: true, alert: true, latch: tasks.LatchReleased},
	{outcome: tasks.Subscription, when: "code 904, 905", verdict: tasks.Archive, upload: tasks.Archive, pause: pauseNone,
		units: unitsRefunded, channel: tasks.ChannelAccount, halt: HaltPath, other: true, alert: true, latch: tasks.LatchReleased},
	{outcome: tasks.Blocked, when: "code 19, 20, 31337, any other HTTP 403", verdict: tasks.Archive, upload: tasks.Archive, pause: pauseNone,
		units: unitsRefunded, channel: tasks.ChannelAccount, halt: HaltSource, other: true, alert: true, latch: tasks.LatchReleased},

	{outcome: tasks.NewerPayload, when: "type or version of a newer build", verdict: tasks.Snooze, upload: tasks.Snooze, pause: pauseNewer,
		units: unitsRefunded, channel: tasks.ChannelNone, latch: tasks.LatchUntouched},
	{outcome: tasks.Interrupted, when: "stopped before anything was sent", verdict: tasks.Snooze, upload: tasks.Snooze, pause: pauseInterrupted,
		units: unitsRefunded, channel: tasks.ChannelExcluded, latch: tasks.LatchReleased},
	{outcome: tasks.Refused, when: "a gate said no", verdict: tasks.Snooze, upload: tasks.Snooze, pause: pauseGate,
		units: unitsRefunded, channel: tasks.ChannelNone, latch: tasks.LatchUntouched},
	{outcome: tasks.StoreDown, when: "no safe place to settle or admit", verdict: tasks.Snooze, upload: tasks.Snooze, pause: pauseStore,
		units: unitsRefunded, channel: tasks.ChannelNone, latch: tasks.LatchReleased},
	{outcome: tasks.Crash, when: "panic, process death; unsent: not billed, upload retried", verdict: tasks.Retry, upload: tasks.Hold, pause: pauseAtOnce,
		counted: true, billed: true, units: unitsKept, channel: tasks.ChannelExcluded, latch: tasks.LatchUncertain},
	{outcome: tasks.Expired, when: "the task's own time is used up", verdict: tasks.Archive, upload: tasks.Archive, pause: pauseNone,
		units: unitsRefunded, channel: tasks.ChannelNone, latch: tasks.LatchUntouched},
	{outcome: tasks.Unknown, when: "any other code, other HTTP 4xx", verdict: tasks.Archive, upload: tasks.Archive, pause: pauseNone,
		units: unitsByCode, channel: tasks.ChannelExcluded, alert: true, latch: tasks.LatchRejected},
}

// rowOf finds the row of an outcome; a word outside the closed set is unknown.
func rowOf(o tasks.Outcome) row {
	unknown := row{}
	for _, r := range table {
		if r.outcome == o {
			return r
		}
		if r.outcome == tasks.Unknown {
			unknown = r
		}
	}
	return unknown
}
