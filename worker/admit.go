package worker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"reprise/admission"
	"reprise/retrypolicy"
	"reprise/tasks"
	"reprise/worker/upkeep"
	"reprise/worker/warn"
)

// admitter acquires permits for calls. After a refusal a delivery waits in its slot for up to SlotWait; if the
// gate opens later, the task goes back to its queue. Safe for concurrent use.
type admitter struct {
	gates       *admission.Gates
	slot        *slot
	settler     *settler
	seeder      upkeep.Seeder
	pauses      *upkeep.PauseController
	cordon      *cordon
	sources     *sourceLog
	metrics     *metrics
	warn        *warn.Limiter
	countChunks bool // Options.LimitCountsChunks
}

// acquire waits for a permit for one call.
func (a *admitter) acquire(ctx context.Context, d *delivery) *ending {
	units, bounded := d.payload.Units(a.countChunks)
	req := admission.Request{
		Key: d.payload.Key, Path: d.payload.Path, Group: d.group, Generation: d.status.Generation,
		Units: units, UnitsBounded: bounded, Exclude: d.refusedBy, Pinned: d.payload.Params.Source,
	}
	until, backoff := a.slot.until(d), time.Duration(0)
	for {
		// Each request has a new attempt id: admission settles a grant whose reply was lost.
		req.AttemptID = newAttemptID()
		asked := time.Now()
		permit, err := a.gates.Acquire(ctx, req)
		if err == nil {
			d.permit = permit
			a.sources.granted(permit, asked)
			return nil
		}
		var refusal *admission.Refusal
		var inFlight *admission.InFlight
		var missing *admission.MissingPeriods
		var end *ending
		switch {
		case errors.As(err, &refusal):
			a.metrics.refusals.WithLabelValues(string(d.payload.Path), string(refusal.Gate)).Inc()
			a.sources.refused(d.payload.Path, refusal, asked)
			if end = permanent(d, refusal); end != nil {
				break
			}
			if time.Now().Add(refusal.RetryAfter).After(until) {
				end = a.backToQueue(ctx, d, refusal)
				break
			}
			end = a.slot.wait(ctx, d, until, "gate "+string(refusal.Gate), func(ctx context.Context) error { return a.gates.Wait(ctx, req, refusal) })
		case errors.As(err, &inFlight):
			wait := time.Until(inFlight.Until)
			if wait > inFlightWait || time.Now().Add(wait).After(until) {
				return without(tasks.Refused, min(wait, inFlightSnooze), "in flight in another delivery")
			}
			end = a.slot.pause(ctx, d, until, causeInFlight, wait)
		case errors.Is(err, admission.ErrTaskEnded):
			if end = a.settler.settled(ctx, d, true); end == nil {
				end = without(tasks.Interrupted, 0, "its verdict is moving from the outbox to the store")
			}
		case errors.As(err, &missing):
			seed := func(ctx context.Context) error { return a.seeder.Seed(ctx, missing) }
			end = a.slot.retry(ctx, d, "unit budgets cannot be seeded", seed)
		default:
			backoff = min(max(2*backoff, downMin), downMax)
			a.warn.Warn(ctx, "admission", "admission does not respond; tasks wait", err)
			if time.Now().Add(backoff).After(until) {
				return without(tasks.StoreDown, 0, "admission does not respond")
			}
			end = a.slot.pause(ctx, d, until, causeStore, backoff)
		}
		if end != nil {
			return end
		}
	}
}

const (
	// inFlightWait is the longest wait in the slot for another delivery of the key.
	inFlightWait = time.Second
	// inFlightSnooze is the longest wait in the queue for it.
	inFlightSnooze = 15 * time.Second
)

// permanent ends a task for which waiting is useless because no source is left after an account refusal, a unit
// budget is too small for it, or a budget is used up and the setting quota_full says to fail at once.
func permanent(d *delivery, r *admission.Refusal) *ending {
	switch {
	case d.refusal != nil && r.AllBlocked && (r.Gate == admission.GateHalt || r.Gate == admission.GateNoCandidate):
		return &ending{class: *d.refusal} // other gates open again without an operator
	case r.Permanent:
		return without(tasks.Unknown, 0, fmt.Sprintf("the task needs more units than the budget of gate %s; enqueue it with a lower --max-units", r.Gate))
	case r.FailFast:
		return without(tasks.Quota, 0, fmt.Sprintf("the budget of gate %s is used up and quota_full is fail_fast", r.Gate))
	}
	return nil
}

const (
	// pausedSpread spreads the return of tasks whose queue was just paused: they are pending again soon, so
	// that none is late when the queue resumes early.
	pausedSpread = 10 * time.Second
	// haltedWait is how long a task waits if it is pinned to a halted source or to a source that this worker does
	// not have. Nothing else wakes the task, because its queue is not paused, and an operator may resume the source
	// at any moment.
	haltedWait = 5 * time.Minute
)

// backToQueue returns the task to its queue until its gate opens, or pauses the queue if no source is left for
// any of its tasks. A task that is pinned to a source waits alone, and its queue is not paused.
func (a *admitter) backToQueue(ctx context.Context, d *delivery, r *admission.Refusal) *ending {
	wait := r.RetryAfter
	if wait > a.slot.longest {
		if end := a.pauseQueue(ctx, d); end != nil {
			return end
		}
		switch {
		case d.payload.Params.Source == "":
			wait = a.slot.longest // a source is available again, or that is unknown
		case r.Gate == admission.GateHalt || r.Gate == admission.GateNoCandidate:
			wait = min(wait, haltedWait)
		}
	}
	return without(tasks.Refused, wait, fmt.Sprintf("gate %s of source %s opens %s", r.Gate, r.Source, opens(r.Gate, r.RetryAfter)))
}

// opens says for display when a gate opens.
func opens(gate admission.Gate, wait time.Duration) string {
	if gate == admission.GateHalt && wait >= admission.UntilResumed {
		return "when an operator resumes it"
	}
	return "in " + wait.Round(time.Second).String()
}

// pauseQueue pauses the queue if every source is blocked for all of its tasks. If AudD refuses only this worker's
// token, it leaves the queue to other workers instead. It returns nil if the queue stays as it is.
func (a *admitter) pauseQueue(ctx context.Context, d *delivery) *ending {
	units, _ := d.payload.Units(a.countChunks)
	b, blocked := a.pauses.Check(ctx, d.queue, units)
	if !blocked {
		return nil
	}
	wait := time.Duration(random() * float64(pausedSpread))
	if b.Gate == admission.GateHalt && a.cordon.add(ctx, d.queue) {
		return without(tasks.Refused, wait, "AudD refuses this worker's token; left for another worker")
	}
	if !a.pauses.Pause(ctx, d.queue, units, b) {
		return nil
	}
	return without(tasks.Refused, wait, b.Evidence()+", "+opens(b.Gate, b.Wait))
}

// release reports the attempt to admission and returns its permit. It does not wait for the reply. The report may
// arrive after the ack, admission repeats it if Redis did not take it, and a permit that is never returned expires.
func (a *admitter) release(d *delivery, end *ending, decision retrypolicy.Decision) {
	if d.permit == nil {
		return
	}
	report := admission.CallReport{Outcome: decision.Outcome, Channel: tasks.ChannelNone}
	if r := end.reply; r != nil {
		report = admission.CallReport{
			Outcome: decision.Outcome, Channel: decision.Channel, Halt: decision.Halt, Probeable: end.class.Probeable,
			RetryAfter: decision.BlockFor, Counted: decision.Counted, PossiblyBilled: decision.PossiblyBilled,
			Latency: r.took, Backoff: decision.Backoff, ClearRecord: ends(decision.Verdict),
		}
		if decision.UnitsKept {
			report.UnitsUsed = d.permit.Units
		}
	}
	a.gates.SettleLater(d.permit, report)
}

// newAttemptID is 128 random bits in hex.
func newAttemptID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return hex.EncodeToString(b[:])
}

// random returns a number in [0, 1) for jitter. It need not be cryptographically secure.
func random() float64 { return mathrand.Float64() }
