package worker

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/hibiken/asynq"

	"reprise/retrypolicy"
	"reprise/tasks"
)

// answer is a verdict on its way to asynq, as the error of a handler. Its text
// begins with the outcome's name and is valid UTF-8: asynq can neither retry
// nor archive a task whose error text is not (its protobuf message refuses it,
// and the task would run again for ever).
type answer struct {
	verdict tasks.Verdict
	outcome tasks.Outcome
	delay   time.Duration
	reason  string
}

// Error is what asynq stores as the task's last error.
func (a *answer) Error() string {
	reason := strings.ToValidUTF8(a.reason, "?")
	if !strings.HasPrefix(reason, string(a.outcome)) {
		reason = string(a.outcome) + ": " + reason
	}
	return reason
}

// Is makes asynq archive instead of retrying, without SkipRetry's suffix in
// the text.
func (a *answer) Is(target error) bool {
	return target == asynq.SkipRetry && (a.verdict == tasks.Archive || a.verdict == tasks.Hold)
}

func answerOf(d retrypolicy.Decision) *answer {
	return &answer{verdict: d.Verdict, outcome: d.Outcome, delay: d.Delay, reason: d.Reason}
}

// without answers a delivery that ends before a call: the policy's row for the
// outcome, with what the gate or store asked for as the least wait.
func (w *Worker) without(d *delivery, outcome tasks.Outcome, wait time.Duration, reason string) *answer {
	c := retrypolicy.Classified{Outcome: outcome, RetryAfter: wait, Reason: string(outcome) + ": " + reason}
	return answerOf(w.policy.Decide(d.payload.Path, c, d.record(), w.random()))
}

// reply hands the verdict to asynq: the one place where a verdict becomes
// asynq's nil, retry or archive.
func (w *Worker) reply(ctx context.Context, d *delivery, a *answer) error {
	w.metrics.verdict(d.payload.Path, a.verdict)
	w.logVerdict(d, a)
	if a.verdict == tasks.Done {
		return nil
	}
	return a
}

// isFailure tells asynq whether to count a retry of its own. asynq's counter
// decides nothing here (tasks.MaxRetry is out of reach); it is what the web UI
// shows. asynq calls it from its recoverer too, with its own errors.
func isFailure(err error) bool {
	if a, ok := errors.AsType[*answer](err); ok {
		return a.verdict != tasks.Snooze && a.verdict != tasks.Done
	}
	return true
}

// lostDelay is the wait before a task whose delivery was lost (lease expired,
// worker died, asynq's own timeout) runs again: the attempt is charged already.
const lostDelay = time.Second

// retryDelay tells asynq when the next delivery is due. asynq floors due times
// to whole seconds and may run a task up to 1 s early (asynq issue 1071), so
// delays are whole seconds rounded up, plus one.
func retryDelay(_ int, err error, _ *asynq.Task) time.Duration {
	if a, ok := errors.AsType[*answer](err); ok {
		return retrypolicy.WholeSeconds(a.delay)
	}
	return retrypolicy.WholeSeconds(lostDelay)
}
