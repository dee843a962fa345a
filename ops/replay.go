package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"reprise/intake"
	"reprise/internal/queue"
	"reprise/store"
	"reprise/tasks"
)

// Replays runs archived tasks again.
type Replays struct{ *base }

// ReplayReport is what a replay did, or would do.
type ReplayReport struct {
	DryRun   bool           `json:"dry_run"`
	Found    int            `json:"found"`
	Replayed int            `json:"replayed"`
	Waiting  int            `json:"waiting"` // were in the queue already
	Left     int            `json:"left"`    // not tried, because the replay was stopped
	Units    int64          `json:"units"`   // of all found, at most
	Cost     *float64       `json:"cost"`    // null = price unknown
	Outcomes map[string]int `json:"outcomes"`
	Failed   []ReplayFailed `json:"failed"`
}

// ReplayFailed is a task that was not replayed.
type ReplayFailed struct {
	Key    string `json:"key"`
	Reason string `json:"reason"`
}

// Interrupted is the key in ReplayReport.Outcomes of tasks that an earlier replay re-opened but did not queue.
const Interrupted = "interrupted replay"

// ReplayPlan is the tasks that Run replays.
type ReplayPlan struct {
	Report ReplayReport
	rows   []store.TaskStatus
}

// Tasks counts the tasks that Run replays.
func (p *ReplayPlan) Tasks() int { return len(p.rows) }

// PlanKeys selects tasks by their keys, which may be shortened. Tasks that cannot be replayed are in Report.Failed. It
// fails with a *NotFoundError for an unknown key.
func (r *Replays) PlanKeys(ctx context.Context, names []string) (*ReplayPlan, error) {
	keys, err := r.fullKeys(ctx, names)
	if err != nil {
		return nil, err
	}
	p := newReplayPlan()
	for _, key := range keys {
		st, err := r.Store.TaskStatus(ctx, key)
		if err != nil {
			return nil, err
		}
		if !st.Known {
			return nil, unknown("%s", ShownName(key))
		}
		if err := intake.Replayable(st, tasks.Archive); err != nil {
			p.Report.Failed = append(p.Report.Failed, ReplayFailed{key, err.Error()})
			continue
		}
		p.rows = append(p.rows, st)
	}
	return p, r.count(ctx, p)
}

// Plan selects at most filter.Limit archived tasks that did not fail permanently. Tasks that an interrupted replay left
// unqueued come first, if Options.Redis is set.
func (r *Replays) Plan(ctx context.Context, filter store.TaskFilter) (*ReplayPlan, error) {
	if err := CheckFilter(filter); err != nil {
		return nil, err
	}
	p := newReplayPlan()
	var err error
	if p.rows, err = r.interrupted(ctx, filter); err != nil {
		return nil, err
	}
	filter.Replayable = true
	filter.Limit = max(1, filter.Limit-len(p.rows))
	more, err := r.Store.Tasks(ctx, filter)
	if err != nil {
		return nil, err
	}
	p.rows = append(p.rows, more...)
	return p, r.count(ctx, p)
}

func newReplayPlan() *ReplayPlan {
	return &ReplayPlan{Report: ReplayReport{DryRun: true, Outcomes: map[string]int{}, Failed: []ReplayFailed{}}}
}

// count sets the outcomes, units and cost of the selected tasks.
func (r *Replays) count(ctx context.Context, p *ReplayPlan) error {
	p.Report.Found = len(p.rows) + len(p.Report.Failed)
	for _, t := range p.rows {
		p.Report.Outcomes[cmp.Or(string(t.Outcome), Interrupted)]++
		payload, ok, err := r.payload(ctx, t.Key, t.Path)
		if err != nil {
			return err
		}
		units := int64(1) // if the payload cannot be read, which Run reports
		if ok {
			units, _ = payload.Units(false)
		}
		p.Report.Units += max(units, 1)
	}
	p.Report.Cost = r.costOf(p.Report.Units)
	return nil
}

// interrupted finds re-opened tasks that have not run since and are in no queue, because their replay was killed.
func (r *Replays) interrupted(ctx context.Context, f store.TaskFilter) ([]store.TaskStatus, error) {
	if r.Redis == nil {
		return nil, nil
	}
	found, err := r.Store.Tasks(ctx, store.TaskFilter{Path: f.Path, Queue: f.Queue, Reopened: true, Limit: f.Limit})
	if err != nil {
		return nil, err
	}
	refs := mapped(found, func(t store.TaskStatus) queue.Ref { return queue.Ref{Queue: t.Queue, ID: t.Key} })
	queued, err := r.queue.Tasks(ctx, refs)
	if err != nil {
		return nil, err
	}
	var out []store.TaskStatus
	for i, t := range found {
		if s := queued[i].State; s == queue.NotQueued || s.Ended() {
			out = append(out, t)
		}
	}
	return out, nil
}

// oneTimeout bounds one replay or release. The end of the caller's context does not stop it.
const oneTimeout = 10 * time.Second

// Run replays the tasks of a plan, one per gap. When ctx ends it finishes the current task and counts the others as
// Left. Running the plan again continues it, and queues no task twice. An error means that Redis or the store is not
// available.
func (r *Replays) Run(ctx context.Context, p *ReplayPlan, gap time.Duration) (ReplayReport, error) {
	report := p.Report
	report.DryRun = false
	in, err := r.intake()
	if err != nil {
		return report, err
	}
	tick := time.NewTicker(gap)
	defer tick.Stop()
	for i, t := range p.rows {
		if i > 0 {
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
		if ctx.Err() != nil {
			report.Left = len(p.rows) - i
			return report, nil
		}
		if err := replayOne(ctx, in, t.Key, &report); err != nil {
			return report, err
		}
	}
	return report, nil
}

func replayOne(ctx context.Context, in *intake.Intake, key string, report *ReplayReport) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), oneTimeout)
	defer cancel()
	status, err := in.Replay(ctx, key)
	switch {
	case store.IsUnavailable(err):
		return err
	case err != nil:
		report.Failed = append(report.Failed, ReplayFailed{key, strings.TrimPrefix(err.Error(), "replay: ")})
	case status == intake.AlreadyQueued:
		report.Waiting++
	default:
		report.Replayed++
	}
	return nil
}

// intake returns what enqueues replayed and released tasks.
func (b *base) intake() (*intake.Intake, error) {
	if b.Queue == nil {
		return nil, errors.New("replay: no Redis connection")
	}
	in, err := intake.New(intake.Options{Redis: b.Queue, Store: b.Store})
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return in, nil
}
