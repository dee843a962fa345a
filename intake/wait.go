package intake

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"reprise/store"
	"reprise/tasks"
)

const pollMin = 150 * time.Millisecond

// Result is one submission of a batch that has its verdict.
type Result struct {
	Name    string          `json:"name"`
	Key     string          `json:"key"`
	Verdict tasks.Verdict   `json:"verdict"` // done, archive or hold
	Outcome tasks.Outcome   `json:"outcome"`
	Reason  string          `json:"reason,omitempty"`
	Cached  bool            `json:"cached"` // answered from the store
	Result  json.RawMessage `json:"result,omitempty"`
}

// Wait calls each for every submission of a plan that Enqueue took, once, as it finishes, and
// returns when all have. It polls the store for at most a fifth of the time. each
// runs in the goroutine of the caller.
func (in *Intake) Wait(ctx context.Context, plan *Plan, each func(Result)) error {
	never := map[string]bool{}
	for i := range plan.Items {
		switch plan.Items[i].Status {
		case ToQueue, Refused, Failed:
			never[plan.submissionID(i)] = true
		case Queued, AlreadyQueued, AlreadyDone, SameContent: // their tasks are in the queue, or were
		}
	}
	return in.wait(ctx, plan.Batch, never, each)
}

// wait skips the submissions in seen and adds to them.
func (in *Intake) wait(ctx context.Context, batch string, seen map[string]bool, each func(Result)) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var finished int64 = -1
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the results: %w", context.Cause(ctx))
		case <-timer.C:
		}
		start := time.Now()
		p, err := in.opts.Store.BatchProgress(ctx, batch)
		if err != nil {
			return fmt.Errorf("wait for the results: %w", err)
		}
		if n := p.Total - p.Waiting; n != finished {
			finished = n
			open, err := in.deliver(ctx, batch, seen, each)
			if err != nil {
				return fmt.Errorf("read the results: %w", err)
			}
			if open == 0 {
				return nil
			}
		}
		timer.Reset(max(pollMin, 4*time.Since(start)))
	}
}

// deliver calls each for what finished and counts what is still open.
func (in *Intake) deliver(ctx context.Context, batch string, seen map[string]bool, each func(Result)) (open int, err error) {
	rows, err := in.opts.Store.Batch(ctx, batch)
	if err != nil {
		return 0, err
	}
	for _, r := range rows {
		switch {
		case seen[r.Submission.ID]:
		case !r.Standing.Finished:
			open++
		default:
			seen[r.Submission.ID] = true
			each(row(r))
		}
	}
	return open, nil
}

func row(r store.BatchRow) Result {
	return Result{
		Name: r.Submission.Name, Key: r.Submission.Key, Verdict: r.Standing.Verdict, Outcome: r.Standing.Outcome,
		Reason: r.Standing.Reason, Cached: r.Submission.Cached, Result: r.Standing.Result,
	}
}
