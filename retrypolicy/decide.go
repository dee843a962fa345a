package retrypolicy

import (
	"fmt"
	"time"

	"reprise/audd"
	"reprise/tasks"
)

// Decide returns the consequences of an attempt: the table's row, limited by the budgets that are left. r is the
// record before the attempt; random in [0, 1) is for the jitter. Decide is pure and accepts every argument.
func (p Policy) Decide(path tasks.Path, c Classified, r tasks.AttemptRecord, random float64) Decision {
	row := rowOf(c.Outcome)
	d := row.decision(path, c)
	d.BlockFor = blockFor(row, c)
	if row.wait == waitQuota && p.QuotaFull == tasks.QuotaWait {
		d.Verdict = tasks.Snooze
	}
	if d.Verdict != tasks.Retry && d.Verdict != tasks.Snooze {
		return d
	}
	if b, why := p.usedUp(row, d, c, r); b != budgetLeft {
		return d.archived(b, why)
	}
	delay := p.delay(row, c, r, random)
	if d.Verdict == tasks.Retry && c.RetryAfter > 0 {
		delay = max(delay, later(c.RetryAfter, random))
	}
	d.Delay = min(delay, maxSnooze)
	if row.ownTime() {
		d.Backoff = d.Delay
	}
	return d
}

// decision returns the consequences in the row for one path, without waits and budgets.
func (row row) decision(path tasks.Path, c Classified) Decision {
	d := Decision{
		Verdict: row.verdict, Outcome: row.outcome,
		Counted: row.counted, PossiblyBilled: row.billed,
		Channel: row.channel, Halt: row.halt, TryOther: row.tryOther,
		UnitsKept: row.units == unitsKept || (row.units == unitsByCode && c.Code != 0),
		Latch:     tasks.LatchUntouched,
		Reason:    Reason(row.outcome, c.Reason),
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

// ownTime reports whether the row's wait counts towards the give-up time.
func (row row) ownTime() bool {
	return row.wait == waitBackoff || row.wait == waitPushback || row.wait == waitUnreachable || row.wait == waitNothing
}

// budget names the limit that forbids another call.
type budget string

const (
	budgetLeft     budget = ""
	budgetAttempts budget = "max_attempts"
	budgetBilled   budget = "max_possibly_billed"
	budgetTime     budget = "give_up_after"
	budgetMissing  budget = "input_missing_attempts"
	budgetRetries  budget = "unreachable_retries"
)

// usedUp returns the budget that forbids another call, and its figures for display.
func (p Policy) usedUp(row row, d Decision, c Classified, r tasks.AttemptRecord) (budget, string) {
	if !row.ownTime() {
		return budgetLeft, "" // waiting for a gate, a store or an account never ends a task
	}
	counted, billed := r.Counted, r.PossiblyBilled
	switch {
	case row.outcome == tasks.Crash && !d.PossiblyBilled:
		billed-- // this decision takes back the charge made at admission
	case row.outcome != tasks.Crash:
		counted += charge(d.Counted)
		billed += charge(d.PossiblyBilled)
	}
	inARow := sameInARow(r, row.outcome) + 1
	result := func(b budget, used, of any) (budget, string) {
		return b, fmt.Sprintf("%s used up (%v of %v)", b, used, of)
	}
	switch {
	case row.wait == waitUnreachable && inARow > len(unreachableWaits):
		return result(budgetRetries, inARow-1, len(unreachableWaits))
	case row.outcome == tasks.InputMissing && inARow >= inputMissingAttempts:
		return result(budgetMissing, inARow, inputMissingAttempts)
	case d.Verdict == tasks.Retry && billed >= p.MaxPossiblyBilled:
		return result(budgetBilled, billed, p.MaxPossiblyBilled)
	case d.Verdict == tasks.Retry && counted >= p.MaxAttempts:
		return result(budgetAttempts, counted, p.MaxAttempts)
	case r.Spent >= p.GiveUpAfter-c.Latency:
		return result(budgetTime, (r.Spent + c.Latency).Round(time.Second), p.GiveUpAfter)
	}
	return budgetLeft, ""
}

// archived ends a task whose budget is used up. The archive can be replayed, except for a URL that AudD
// repeatedly could not download, which is an invalid request.
func (d Decision) archived(b budget, why string) Decision {
	d.Verdict = tasks.Archive
	if b == budgetRetries {
		invalid := rowOf(tasks.InvalidRequest)
		d.Outcome, d.Final = invalid.outcome, invalid.final
		d.Reason = reason(invalid.outcome, d.Reason)
		if d.Latch != tasks.LatchUntouched {
			d.Latch = invalid.latch
		}
	}
	d.Reason = withBudget(d.Reason, why)
	return d
}

// delay returns the row's wait, before a retry's Retry-After and the upper bound are applied.
func (p Policy) delay(row row, c Classified, r tasks.AttemptRecord, random float64) time.Duration {
	switch row.wait {
	case waitBackoff:
		return p.Backoff(r.Streak+1, random)
	case waitPushback:
		return p.pushback(r.Throttles+1, askedFor(c), random)
	case waitUnreachable:
		return later(unreachableWaits[sameInARow(r, row.outcome)], random)
	case waitInterrupted:
		return interruptedWait
	case waitNewer:
		return later(max(c.RetryAfter, newerPayloadWait), random)
	case waitStore:
		n := sameInARow(r, row.outcome) + 1
		return later(max(c.RetryAfter, doubled(storeDownWait, p.BackoffMax, n)), random)
	case waitGate:
		return later(max(c.RetryAfter, time.Second), random)
	case waitQuota:
		return later(max(c.RetryAfter, quotaWait), random)
	default:
		return 0
	}
}

// blockFor returns for how long AudD asks to block source and path.
func blockFor(row row, c Classified) time.Duration {
	if !row.blocks {
		return 0
	}
	return min(askedFor(c), maxBlock)
}

// askedFor returns how long AudD asks to wait. Code 611 is a daily limit that every other task meets too, so its
// wait is at least streamLimitWait.
func askedFor(c Classified) time.Duration {
	if c.Outcome == tasks.Throttled && c.Code == codeStreamLimit {
		return max(c.RetryAfter, streamLimitWait)
	}
	return max(c.RetryAfter, 0)
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
