package retrypolicy

import (
	"fmt"
	"time"

	"reprise/audd"
	"reprise/tasks"
)

// Decide says what follows from an attempt: the table's row, bounded by the
// budgets. It is pure and total; random in [0, 1) is the jitter.
func (p Policy) Decide(path tasks.Path, c Classified, r tasks.AttemptRecord, random float64) Decision {
	row := rowOf(c.Outcome)
	d := row.decision(path, c)
	d.BlockFor = p.shut(row, c)
	if row.pause == pauseQuota && p.QuotaFull == tasks.QuotaWait {
		d.Verdict = tasks.Snooze
	}
	if d.Verdict != tasks.Retry && d.Verdict != tasks.Snooze {
		return d
	}
	if b, why := p.usedUp(row, d, c, r); b != budgetLeft {
		return d.archived(b, why)
	}
	wait := p.wait(row, c, r, random)
	if d.Verdict == tasks.Retry && c.RetryAfter > 0 {
		wait = max(wait, later(c.RetryAfter, random))
	}
	d.Delay = min(wait, p.MaxSnooze)
	if row.ownTime() {
		d.Backoff = d.Delay
	}
	return d
}

// decision is the row itself, for one path.
func (row row) decision(path tasks.Path, c Classified) Decision {
	d := Decision{
		Verdict: row.verdict, Outcome: row.outcome,
		Counted: row.counted, PossiblyBilled: row.billed,
		Channel: row.channel, Halt: row.halt, HaltAfter: row.haltAfter, TryOther: row.other,
		UnitsKept: row.units == unitsKept || (row.units == unitsByCode && c.Code != 0),
		Latch:     tasks.LatchUntouched, Alert: row.alert,
		Reason: withOutcome(row.outcome, c.Reason),
	}
	if path == tasks.Upload {
		d.Verdict, d.Latch, d.TryOther = row.upload, row.latch, false
	}
	if row.outcome == tasks.Crash && c.Phase == audd.PhaseUnsent {
		d.PossiblyBilled, d.UnitsKept, d.Verdict = false, false, tasks.Retry
		if path == tasks.Upload {
			d.Latch = tasks.LatchReleased
		}
	}
	d.Final = row.final && d.Verdict == tasks.Archive
	return d
}

// ownTime says whether the row's wait is the task's own and so counts towards
// the give-up time.
func (row row) ownTime() bool {
	return row.pause == pauseBackoff || row.pause == pausePushback || row.pause == pauseUnreachable || row.pause == pauseAtOnce
}

// budget names what forbids another call.
type budget string

const (
	budgetLeft     budget = ""
	budgetAttempts budget = "max_attempts"
	budgetBilled   budget = "max_possibly_billed"
	budgetTime     budget = "give_up_after"
	budgetMissing  budget = "input_missing_attempts"
	budgetRetries  budget = "unreachable_waits"
)

// usedUp finds the budget that forbids another call, and says how it stands.
func (p Policy) usedUp(row row, d Decision, c Classified, r tasks.AttemptRecord) (budget, string) {
	if !row.ownTime() {
		return budgetLeft, "" // waiting for others never ends a task
	}
	counted, billed := r.Counted, r.PossiblyBilled
	switch {
	case row.outcome == tasks.Crash && !d.PossiblyBilled:
		billed-- // the pre-charge that this decision takes back
	case row.outcome != tasks.Crash:
		counted += charge(d.Counted)
		billed += charge(d.PossiblyBilled)
	}
	equal := sameInARow(r, row.outcome) + 1
	say := func(b budget, used, of any) (budget, string) {
		return b, fmt.Sprintf("%s used up (%v of %v)", b, used, of)
	}
	switch {
	case row.pause == pauseUnreachable && equal > len(p.UnreachableWaits):
		return say(budgetRetries, equal-1, len(p.UnreachableWaits))
	case row.outcome == tasks.InputMissing && equal >= p.InputMissingAttempts:
		return say(budgetMissing, equal, p.InputMissingAttempts)
	case d.Verdict == tasks.Retry && billed >= p.MaxPossiblyBilled:
		return say(budgetBilled, billed, p.MaxPossiblyBilled)
	case d.Verdict == tasks.Retry && counted >= p.MaxAttempts:
		return say(budgetAttempts, counted, p.MaxAttempts)
	case r.Spent >= p.GiveUpAfter-c.Latency:
		return say(budgetTime, (r.Spent + c.Latency).Round(time.Second), p.GiveUpAfter)
	}
	return budgetLeft, ""
}

// archived ends a task whose budget ran out. It stays replayable, but for a URL
// that AudD could not download again and again: that is a bad request.
func (d Decision) archived(b budget, why string) Decision {
	d.Verdict = tasks.Archive
	if b == budgetRetries {
		bad := rowOf(tasks.InvalidRequest)
		d.Outcome, d.Final = bad.outcome, bad.final
		d.Reason = reason(bad.outcome, d.Reason)
		if d.Latch != tasks.LatchUntouched {
			d.Latch = bad.latch
		}
	}
	d.Reason = withBudget(d.Reason, why)
	return d
}

// wait is the row's own wait, before Retry-After and the clamp.
func (p Policy) wait(row row, c Classified, r tasks.AttemptRecord, random float64) time.Duration {
	switch row.pause {
	case pauseBackoff:
		return p.Backoff(r.Streak+1, random)
	case pausePushback:
		asked := c.RetryAfter
		if c.Code == codeStreamLimit {
			asked = max(asked, p.MinStreamLimitWait)
		}
		return p.Pushback(r.Throttles+1, asked, random)
	case pauseUnreachable:
		return later(p.UnreachableWaits[sameInARow(r, row.outcome)], random)
	case pauseInterrupted:
		return p.InterruptedWait
	case pauseNewer:
		return later(max(c.RetryAfter, p.NewerPayloadWait), random)
	case pauseStore:
		n := sameInARow(r, row.outcome) + 1
		return later(max(c.RetryAfter, doubled(p.StoreDownWait, p.BackoffMax, n)), random)
	case pauseGate:
		return later(max(c.RetryAfter, time.Second), random)
	case pauseQuota:
		return later(max(c.RetryAfter, p.QuotaWait), random)
	default:
		return 0
	}
}

// shut is how long the upstream asked the source and path to be left alone. A
// daily limit asks for MinStreamLimitWait at least: every other task would
// meet the same answer.
func (p Policy) shut(row row, c Classified) time.Duration {
	if !row.shuts {
		return 0
	}
	asked := max(c.RetryAfter, 0)
	if row.outcome == tasks.Throttled && c.Code == codeStreamLimit {
		asked = max(asked, p.MinStreamLimitWait)
	}
	return min(asked, p.MaxBlock)
}

func sameInARow(r tasks.AttemptRecord, o tasks.Outcome) int {
	if r.LastOutcome != o {
		return 0
	}
	return max(r.SameOutcome, 0)
}

func charge(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
