package retrypolicy

import (
	"fmt"
	"time"

	"reprise/audd"
	"reprise/tasks"
)

// Decide says what follows from an attempt: the table's row, bounded by the
// budgets. It is pure and total; random in [0, 1) is the jitter.
func (p Policy) Decide(path tasks.Path, c Classified, r Record, random float64) Decision {
	row := rowOf(c.Outcome)
	d := row.decision(path, c)
	d.Shut = p.shut(row, c)
	if row.pause == pauseQuota && p.QuotaFull == QuotaWait {
		d.Verdict = tasks.Snooze
	}
	if d.Verdict != tasks.Retry && d.Verdict != tasks.Snooze {
		return d
	}
	if budget := p.usedUp(row, d, c, r); budget != "" {
		return p.archive(d, row, budget)
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
		Latch:     LatchUntouched, Alert: row.alert,
		Reason: withOutcome(row.outcome, c.Reason),
	}
	if path == tasks.Upload {
		d.Verdict, d.Latch, d.TryOther = row.upload, row.latch, false
	}
	if row.outcome == tasks.Crash && c.Phase == audd.PhaseUnsent {
		d.PossiblyBilled, d.UnitsKept, d.Verdict = false, false, tasks.Retry
		if path == tasks.Upload {
			d.Latch = LatchReleased
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

// usedUp names the budget that forbids another call, "" if none does.
func (p Policy) usedUp(row row, d Decision, c Classified, r Record) string {
	if !row.ownTime() {
		return "" // nothing was spent: waiting for others never ends a task
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
	switch {
	case row.pause == pauseUnreachable && equal > len(p.UnreachableWaits):
		return fmt.Sprintf("%d retries used up", len(p.UnreachableWaits))
	case row.outcome == tasks.InputMissing && equal >= p.InputMissingAttempts:
		return fmt.Sprintf("input_missing_attempts used up (%d of %d)", equal, p.InputMissingAttempts)
	case d.Verdict == tasks.Retry && billed >= p.MaxPossiblyBilled:
		return fmt.Sprintf("max_possibly_billed used up (%d of %d)", billed, p.MaxPossiblyBilled)
	case d.Verdict == tasks.Retry && counted >= p.MaxAttempts:
		return fmt.Sprintf("max_attempts used up (%d of %d)", counted, p.MaxAttempts)
	case r.Spent >= p.GiveUpAfter-c.Latency:
		return fmt.Sprintf("give_up_after used up (%s of %s)", (r.Spent + c.Latency).Round(time.Second), p.GiveUpAfter)
	}
	return ""
}

// archive ends a task whose budget ran out. It stays replayable, but for a URL
// that AudD could not download again and again: that is a bad request.
func (p Policy) archive(d Decision, row row, budget string) Decision {
	d.Verdict = tasks.Archive
	d.Reason = withBudget(d.Reason, budget)
	if row.pause == pauseUnreachable && budget == fmt.Sprintf("%d retries used up", len(p.UnreachableWaits)) {
		bad := rowOf(tasks.InvalidRequest)
		d.Outcome, d.Final = bad.outcome, bad.final
		d.Reason = withBudget(reason(bad.outcome, d.Reason), budget)
		if d.Latch != LatchUntouched {
			d.Latch = bad.latch
		}
	}
	return d
}

// wait is the row's own wait, before Retry-After and the clamp.
func (p Policy) wait(row row, c Classified, r Record, random float64) time.Duration {
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
	return min(asked, p.MaxShut)
}

func sameInARow(r Record, o tasks.Outcome) int {
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
