package worker

import (
	"errors"
	"strings"
	"time"

	"github.com/hibiken/asynq"

	"reprise/retrypolicy"
	"reprise/tasks"
)

// answer is a verdict on its way to asynq, as the error of a handler. Its text
// begins with the outcome's name and is valid UTF-8: asynq can neither retry
// nor archive a task with an invalid error text, and would run it again
// whenever its lease ends.
type answer struct {
	verdict tasks.Verdict
	outcome tasks.Outcome
	delay   time.Duration
	reason  string
}

func answerOf(d retrypolicy.Decision) *answer {
	return &answer{verdict: d.Verdict, outcome: d.Outcome, delay: d.Delay, reason: d.Reason}
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

// asError is the answer as the handler returns it: nil for done.
func (a *answer) asError() error {
	if a.verdict == tasks.Done {
		return nil
	}
	return a
}

// isFailure tells asynq whether to raise its retry counter. The counter decides
// nothing (tasks.MaxRetry is out of reach); the web UI shows it. asynq's
// recoverer calls it with errors of its own.
func isFailure(err error) bool {
	if a, ok := errors.AsType[*answer](err); ok {
		return a.verdict != tasks.Snooze && a.verdict != tasks.Done
	}
	return true
}

// lostDelay is the wait after a delivery that asynq ended itself (lease expired,
// worker died, its own timeout): the attempt is charged already.
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
