package ops

import (
	"cmp"
	"context"
	"errors"
	"time"

	"reprise/admission"
	"reprise/internal/queue"
	"reprise/internal/text"
	"reprise/store"
	"reprise/tasks"
)

// Why explains one task: what it waits for, until when, and what to do.
type Why struct {
	Key            string                  `json:"key"`
	Input          string                  `json:"input"` // where its audio is; a URL without its query
	Names          []string                `json:"names"`
	ExternalIDs    []string                `json:"external_ids"`
	Batches        []string                `json:"batches"`
	Path           tasks.Path              `json:"path"`
	Group          string                  `json:"group"`
	Queue          string                  `json:"queue"`
	State          string                  `json:"state"`
	QueueState     queue.State             `json:"queue_state"` // asynq's word, "" = not queued
	Because        string                  `json:"because"`
	Starts         *time.Time              `json:"starts"`      // null = unknown, or only after StartsWhen
	StartsWhen     string                  `json:"starts_when"` // what must happen first; "" = nothing
	StartsGuessed  bool                    `json:"starts_guessed"`
	StartsText     string                  `json:"starts_text"` // the same in words; "" = it is finished
	ToDo           []string                `json:"to_do"`
	PendingSince   *time.Time              `json:"pending_since"`
	Ahead          *int64                  `json:"ahead"` // pending tasks that run before it
	Counted        int                     `json:"counted"`
	MaxAttempts    int                     `json:"max_attempts"`
	PossiblyBilled int                     `json:"possibly_billed"`
	MaxBilled      int                     `json:"max_possibly_billed"`
	Calls          Cost                    `json:"calls"`
	LastOutcome    tasks.Outcome           `json:"last_outcome"`
	LastReason     string                  `json:"last_reason"`
	LastAt         *time.Time              `json:"last_at"`
	RequestID      string                  `json:"request_id"`
	InFlightUntil  *time.Time              `json:"in_flight_until"`
	Paused         bool                    `json:"paused"`
	PausedFor      string                  `json:"paused_for"` // the names of the reasons
	Pause          []PauseReason           `json:"pause_reasons"`
	Waiting        int64                   `json:"queue_waiting"`
	Running        int64                   `json:"queue_running"`
	Workers        int                     `json:"workers"` // that serve its queue
	Sources        []Source                `json:"sources"`
	SharedBudgets  []admission.BudgetState `json:"shared_budgets"` // of all sources and of its group
}

// WhyReport is the tasks that a name stands for, newest first.
type WhyReport struct {
	Tasks []Why `json:"tasks"`
	More  int   `json:"more"` // tasks of the same name that are left out
}

// Why explains at most limit tasks that a name stands for. A name is a key or its beginning, a file, a URL or an
// external id. It fails with a *NotFoundError if there is no such task.
func (t *Tasks) Why(ctx context.Context, name string, limit int) (WhyReport, error) {
	keys, err := t.find(ctx, name)
	if err != nil {
		return WhyReport{}, err
	}
	q, err := t.newQueueEvidence(ctx)
	if err != nil {
		return WhyReport{}, err
	}
	report := WhyReport{Tasks: []Why{}, More: max(0, len(keys)-limit)}
	for _, key := range keys[:min(len(keys), limit)] {
		e, err := t.gather(ctx, q, key)
		if err != nil {
			return report, err
		}
		now := t.times()
		c := Explain(e, now)
		if c.State == "UNKNOWN" {
			return report, unknown("%s: %s", ShownName(key), c.Because)
		}
		report.Tasks = append(report.Tasks, t.why(e, c, now))
	}
	return report, nil
}

func (t *Tasks) why(e Evidence, c Cause, now text.Times) Why {
	w := Why{
		Key: e.Key, Input: e.Input, Path: e.path(), Group: e.Group, Queue: e.Queue, State: c.State, QueueState: e.State, Because: c.Because,
		Starts: stamp(c.Starts), StartsWhen: c.When, StartsGuessed: c.Guess && !c.Starts.IsZero(), ToDo: append([]string{}, c.ToDo...),
		PendingSince: stamp(e.Since), Counted: e.Gates.Record.Counted, MaxAttempts: t.MaxAttempts, PossiblyBilled: e.Gates.Record.PossiblyBilled,
		MaxBilled: t.MaxPossiblyBilled, Calls: costRow(e.Key, e.Sum, t.Price), LastOutcome: e.Gates.Record.LastOutcome, InFlightUntil: stamp(e.Gates.Until),
		Paused: e.Pause.Paused() || e.Stats.Paused, Pause: reasonsOf(e.Pause), Waiting: e.Stats.Waiting(), Running: e.Stats.Active, Workers: e.Workers,
		Names: []string{}, ExternalIDs: []string{}, Batches: []string{}, Sources: []Source{}, SharedBudgets: append([]admission.BudgetState{}, e.Gates.State.Budgets...),
	}
	if !e.finished() {
		w.StartsText = startsText(c, now)
	}
	if w.Paused {
		w.PausedFor = reasonNames(e.Pause)
	}
	if e.Ahead >= 0 {
		w.Ahead = &e.Ahead
	}
	for _, s := range e.Submissions {
		w.Names = append(w.Names, ShownName(s.Submission.Name))
		w.ExternalIDs = append(w.ExternalIDs, s.Submission.ExternalID)
		w.Batches = append(w.Batches, s.Submission.Batch)
	}
	w.Names, w.ExternalIDs, w.Batches = filled(w.Names), filled(w.ExternalIDs), filled(w.Batches)
	if last := e.LastCall; last != nil {
		w.LastOutcome, w.LastReason, w.LastAt, w.RequestID = last.Outcome, last.Reason, stamp(last.At), last.RequestID
	}
	for _, st := range e.usable() {
		w.Sources = append(w.Sources, sourceOf(st, now))
	}
	if g := e.group(); g != nil {
		w.SharedBudgets = append(w.SharedBudgets, g.Budgets...)
	}
	return w
}

// startsText returns when a task starts, "unknown" if that is not known.
func startsText(c Cause, t text.Times) string {
	switch {
	case c.When != "":
		return c.When
	case c.Starts.IsZero():
		return "unknown"
	case c.Starts.Sub(t.Now) < time.Second:
		return "any moment"
	case c.Guess:
		return "about " + t.Until(c.Starts)
	}
	return t.Until(c.Starts)
}

// gather reads the evidence about a task.
func (t *Tasks) gather(ctx context.Context, q *queueEvidence, key string) (Evidence, error) {
	gates, err := q.gates.TaskState(ctx, key)
	if err != nil {
		return Evidence{}, err
	}
	st, err := t.Store.TaskStatus(ctx, key)
	if err != nil {
		return Evidence{}, err
	}
	found, err := q.locate(ctx, []store.TaskStatus{{Key: key, Path: gates.Path, Queue: cmp.Or(st.Queue, gates.Path.Queue(""))}})
	if err != nil {
		return Evidence{}, err
	}
	e, err := q.of(ctx, found[0].Queue)
	if err != nil {
		return e, err
	}
	e.Key, e.Status, e.Gates, e.State, e.NextRun, e.InList = key, st, gates, found[0].State, found[0].NextRun, false
	if err := t.fromStore(ctx, &e); err != nil {
		return e, err
	}
	if group := e.group(); group != nil {
		e.Pinned = cmp.Or(e.Pinned, group.Source)
	}
	return e, t.fromQueue(ctx, &e)
}

func (t *Tasks) fromStore(ctx context.Context, e *Evidence) error {
	var err error
	if e.Submissions, err = t.Store.Submissions(ctx, store.SubmissionFilter{Key: e.Key}); err != nil {
		return err
	}
	sums, err := t.Store.SumCalls(ctx, store.CallFilter{Key: e.Key}, store.ByPath)
	if err != nil {
		return err
	}
	if len(sums) > 0 {
		e.Sum = sums[0]
	}
	last, called, err := t.Store.LastCall(ctx, e.Key)
	if err != nil {
		return err
	}
	if called {
		e.LastCall = &last
	}
	p, ok, err := t.payload(ctx, e.Key, e.path())
	if err != nil || !ok {
		return err
	}
	e.Pinned, e.Input = p.Params.Source, inputOf(p)
	e.Units, _ = p.Units(false)
	return nil
}

// fromQueue reads the task's last error and its place in line.
func (t *Tasks) fromQueue(ctx context.Context, e *Evidence) error {
	task, err := t.queue.Task(ctx, e.Queue, e.Key)
	if errors.Is(err, queue.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	e.LastError = task.LastError
	if e.State != queue.Pending {
		return nil
	}
	line, err := t.queue.Line(ctx, e.Queue, e.Key)
	e.Since, e.Ahead = line.Since, line.Ahead
	return err
}
