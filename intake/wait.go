package intake

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"reprise/tasks"
)

// pollInterval is the shortest time between two reads of the store.
const pollInterval = 150 * time.Millisecond

// Result is one submission of a batch whose task is finished.
type Result struct {
	Name    string          `json:"name"`
	Key     string          `json:"key"`
	Verdict tasks.Verdict   `json:"verdict"` // done, archive or hold
	Outcome tasks.Outcome   `json:"outcome"`
	Reason  string          `json:"reason,omitempty"`
	Cached  bool            `json:"cached"` // answered from the store
	Result  json.RawMessage `json:"result,omitempty"`
}

// Wait calls each once for every submission of an enqueued plan, when it finishes, and returns when all have finished.
// It calls each on the caller's goroutine, and reads the store for at most a fifth of the time. It leaves out items that
// Enqueue did not queue.
func (in *Intake) Wait(ctx context.Context, plan *Plan, each func(Result)) error {
	seen := map[string]bool{}
	for i := range plan.Items {
		switch plan.Items[i].Status {
		case ToQueue, Refused, Failed:
			seen[plan.submissionID(i)] = true
		case Queued, AlreadyQueued, AlreadyDone, SameContent: // will finish, or have
		}
	}
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
		p, err := in.opts.Store.BatchProgress(ctx, plan.Batch)
		if err != nil {
			return fmt.Errorf("wait for the results: %w", err)
		}
		if n := p.Total - p.Waiting; n != finished {
			finished = n
			open, err := in.deliver(ctx, plan.Batch, seen, each)
			if err != nil {
				return fmt.Errorf("read the results: %w", err)
			}
			if open == 0 {
				return nil
			}
		}
		timer.Reset(max(pollInterval, 4*time.Since(start)))
	}
}

// deliver calls each for the finished submissions that are not in seen, adds them to seen, and counts the
// unfinished ones.
func (in *Intake) deliver(ctx context.Context, batch string, seen map[string]bool, each func(Result)) (open int, err error) {
	rows, err := in.opts.Store.Batch(ctx, batch)
	if err != nil {
		return 0, err
	}
	for _, r := range rows {
		switch sub, st := r.Submission, r.Status; {
		case seen[sub.ID]:
		case !st.Finished:
			open++
		default:
			seen[sub.ID] = true
			each(Result{Name: sub.Name, Key: sub.Key, Verdict: st.Verdict, Outcome: st.Outcome, Reason: st.Reason,
				Cached: sub.Cached, Result: st.Result})
		}
	}
	return open, nil
}
