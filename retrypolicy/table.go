package retrypolicy

import "reprise/tasks"

// wait says how long a task waits between two deliveries.
type wait string

const (
	waitNone        wait = "–"
	waitNothing     wait = "at once"
	waitBackoff     wait = "backoff"      // Policy.Backoff, or Retry-After if that is later
	waitPushback    wait = "pushback"     // Retry-After, else backoff; code 611: 1 h or more
	waitUnreachable wait = "1, 5, 15 min" // unreachableWaits
	waitInterrupted wait = "1 s"          // interruptedWait
	waitNewer       wait = "1 min"        // newerPayloadWait
	waitStore       wait = "5 s doubling" // storeDownWait
	waitGate        wait = "the gate's"   // Classified.RetryAfter
	waitQuota       wait = "quota_full"   // Policy.QuotaFull: wait 1 min, or archive
)

// units says what becomes of the reserved units.
type units string

const (
	unitsKept     units = "kept"
	unitsRefunded units = "refunded"
	unitsByCode   units = "by code" // kept if the answer has an AudD code, refunded if a proxy answered
)

// row has the consequences of one outcome.
type row struct {
	outcome   tasks.Outcome
	when      string        // for display, repeated in doc.go
	verdict   tasks.Verdict // of a recognition
	upload    tasks.Verdict // of an upload
	wait      wait          // of the verdicts retry and snooze
	counted   bool          // charges max_attempts
	billed    bool          // charges max_possibly_billed
	units     units
	channel   tasks.Channel
	halt      tasks.HaltScope   // halted by one response
	haltAfter int               // admission halts source and path after that many in a row, 0 = never; for display
	blocks    bool              // a Retry-After blocks source and path
	tryOther  bool              // another usable source may be called in this delivery
	final     bool              // an archive is a tombstone
	alert     bool              // dashboards/rules.yml has an alert for it; for display
	latch     tasks.LatchEffect // of an upload
}

// table is the whole policy except arithmetic. doc.go shows the same rows, which a test compares.
var table = []row{
	{outcome: tasks.Match, when: "a song was found; code 51 with a song", verdict: tasks.Done, upload: tasks.Done, wait: waitNone,
		units: unitsKept, channel: tasks.ChannelSuccess, latch: tasks.LatchSettled},
	{outcome: tasks.NoMatch, when: "no song was found; code 51 with a null result", verdict: tasks.Done, upload: tasks.Done, wait: waitNone,
		units: unitsKept, channel: tasks.ChannelSuccess, latch: tasks.LatchSettled},
	{outcome: tasks.Uploaded, when: "the upload was accepted", verdict: tasks.Done, upload: tasks.Done, wait: waitNone,
		units: unitsKept, channel: tasks.ChannelSuccess, latch: tasks.LatchSettled},
	{outcome: tasks.NotReleased, when: "code 907 (to an upload: unknown)", verdict: tasks.Done, upload: tasks.Archive, wait: waitNone,
		units: unitsKept, channel: tasks.ChannelSuccess, latch: tasks.LatchRejected},

	{outcome: tasks.Throttled, when: "HTTP 429, code 611", verdict: tasks.Snooze, upload: tasks.Snooze, wait: waitPushback,
		units: unitsRefunded, channel: tasks.ChannelExcluded, blocks: true, latch: tasks.LatchReleased},
	{outcome: tasks.UnavailableUnsent, when: "DNS, dial, TLS or proxy failure", verdict: tasks.Retry, upload: tasks.Retry, wait: waitBackoff,
		counted: true, units: unitsRefunded, channel: tasks.ChannelFailure, latch: tasks.LatchReleased},
	{outcome: tasks.Unavailable, when: "HTTP 5xx, 408, code 100", verdict: tasks.Retry, upload: tasks.Hold, wait: waitBackoff,
		counted: true, billed: true, units: unitsKept, channel: tasks.ChannelFailure, blocks: true, latch: tasks.LatchUncertain},
	{outcome: tasks.Ambiguous, when: "sent, but no readable response", verdict: tasks.Retry, upload: tasks.Hold, wait: waitBackoff,
		counted: true, billed: true, units: unitsKept, channel: tasks.ChannelFailure, latch: tasks.LatchUncertain},

	{outcome: tasks.InvalidAudio, when: "code 300, 400, 500, 501 (file)", verdict: tasks.Archive, upload: tasks.Archive, wait: waitNone,
		units: unitsKept, channel: tasks.ChannelSuccess, final: true, latch: tasks.LatchRejected},
	{outcome: tasks.InvalidRequest, when: "code 50, 51, 601–602, 700–702, 906, 1000, HTTP 400/413/414/415, bad payload", verdict: tasks.Archive, upload: tasks.Archive, wait: waitNone,
		units: unitsByCode, channel: tasks.ChannelSuccess, final: true, latch: tasks.LatchRejected},
	{outcome: tasks.InputUnreachable, when: "code 600; then invalid_request", verdict: tasks.Retry, upload: tasks.Retry, wait: waitUnreachable,
		counted: true, units: unitsKept, channel: tasks.ChannelSuccess, latch: tasks.LatchReleased},
	{outcome: tasks.InputGone, when: "code 501 (URL), 600 with deleted or expired", verdict: tasks.Archive, upload: tasks.Archive, wait: waitNone,
		units: unitsKept, channel: tasks.ChannelExcluded, final: true, latch: tasks.LatchRejected},
	{outcome: tasks.InputMissing, when: "file or spool object missing 3 times in a row", verdict: tasks.Retry, upload: tasks.Retry, wait: waitBackoff,
		counted: true, units: unitsRefunded, channel: tasks.ChannelExcluded, latch: tasks.LatchReleased},
	{outcome: tasks.InputChanged, when: "content differs from what was enqueued", verdict: tasks.Archive, upload: tasks.Archive, wait: waitNone,
		units: unitsRefunded, channel: tasks.ChannelExcluded, latch: tasks.LatchReleased},
	{outcome: tasks.LinkExpired, when: "a signed URL past its expiry", verdict: tasks.Archive, upload: tasks.Archive, wait: waitNone,
		units: unitsByCode, channel: tasks.ChannelNone, latch: tasks.LatchReleased},
	{outcome: tasks.NotFound, when: "HTTP 404, 3xx", verdict: tasks.Archive, upload: tasks.Archive, wait: waitNone,
		units: unitsRefunded, channel: tasks.ChannelExcluded, haltAfter: 5, latch: tasks.LatchReleased},

	{outcome: tasks.Authentication, when: "code 900, 901, 903, HTTP 401, 403 in JSON", verdict: tasks.Archive, upload: tasks.Archive, wait: waitNone,
		units: unitsRefunded, channel: tasks.ChannelAccount, haltAfter: 3, tryOther: true, alert: true, latch: tasks.LatchReleased},
	{outcome: tasks.Quota, when: "code 902", verdict: tasks.Archive, upload: tasks.Archive, wait: waitQuota,
		units: unitsRefunded, channel: tasks.ChannelAccount, halt: tasks.HaltPath, blocks: true, tryOther: true, alert: true, latch: tasks.LatchReleased},
	{outcome: tasks.Subscription, when: "code 904, 905", verdict: tasks.Archive, upload: tasks.Archive, wait: waitNone,
		units: unitsRefunded, channel: tasks.ChannelAccount, halt: tasks.HaltPath, tryOther: true, alert: true, latch: tasks.LatchReleased},
	{outcome: tasks.Blocked, when: "code 19, 20, 31337, any other HTTP 403", verdict: tasks.Archive, upload: tasks.Archive, wait: waitNone,
		units: unitsRefunded, channel: tasks.ChannelAccount, halt: tasks.HaltSource, tryOther: true, alert: true, latch: tasks.LatchReleased},

	{outcome: tasks.NewerPayload, when: "type or version of a newer build", verdict: tasks.Snooze, upload: tasks.Snooze, wait: waitNewer,
		units: unitsRefunded, channel: tasks.ChannelNone, latch: tasks.LatchUntouched},
	{outcome: tasks.Interrupted, when: "stopped before anything was sent", verdict: tasks.Snooze, upload: tasks.Snooze, wait: waitInterrupted,
		units: unitsRefunded, channel: tasks.ChannelExcluded, latch: tasks.LatchReleased},
	{outcome: tasks.Refused, when: "a gate refused the call", verdict: tasks.Snooze, upload: tasks.Snooze, wait: waitGate,
		units: unitsRefunded, channel: tasks.ChannelNone, latch: tasks.LatchUntouched},
	{outcome: tasks.StoreDown, when: "the admission store or the ledger does not respond", verdict: tasks.Snooze, upload: tasks.Snooze, wait: waitStore,
		units: unitsRefunded, channel: tasks.ChannelNone, latch: tasks.LatchReleased},
	{outcome: tasks.Crash, when: "panic, process death; unsent: not billed, upload retried", verdict: tasks.Retry, upload: tasks.Hold, wait: waitNothing,
		counted: true, billed: true, units: unitsKept, channel: tasks.ChannelExcluded, latch: tasks.LatchUncertain},
	{outcome: tasks.Expired, when: "give_up_after is used up", verdict: tasks.Archive, upload: tasks.Archive, wait: waitNone,
		units: unitsRefunded, channel: tasks.ChannelNone, latch: tasks.LatchUntouched},
	{outcome: tasks.Unknown, when: "any other code, other HTTP 4xx", verdict: tasks.Archive, upload: tasks.Archive, wait: waitNone,
		units: unitsByCode, channel: tasks.ChannelExcluded, alert: true, latch: tasks.LatchRejected},
}

// rowOf returns the row of an outcome. A value outside the closed set is unknown.
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
