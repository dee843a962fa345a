package ops

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"reprise/admission"
	"reprise/internal/queue"
	"reprise/internal/text"
	"reprise/store"
	"reprise/tasks"
)

// Why is all about one task: what it waits for, until when, and what to do.
type Why struct {
	Key            string        `json:"key"`
	Input          string        `json:"input"` // where its audio is; a URL without its query
	Names          []string      `json:"names"`
	ExternalIDs    []string      `json:"external_ids"`
	Batches        []string      `json:"batches"`
	Path           tasks.Path    `json:"path"`
	Group          string        `json:"group"`
	Queue          string        `json:"queue"`
	State          string        `json:"state"`
	QueueState     queue.State   `json:"queue_state"` // asynq's word, "" = not queued
	Because        string        `json:"because"`
	Starts         *time.Time    `json:"starts"`      // null = unknown, or not by itself
	StartsWhen     string        `json:"starts_when"` // what must happen first; "" = nothing
	StartsGuessed  bool          `json:"starts_guessed"`
	StartsText     string        `json:"starts_text"` // the same in words; "" = it is finished
	ToDo           []string      `json:"to_do"`
	PendingSince   *time.Time    `json:"pending_since"`
	Ahead          *int64        `json:"ahead"` // pending tasks that run before it
	Counted        int           `json:"counted"`
	MaxAttempts    int           `json:"max_attempts"`
	PossiblyBilled int           `json:"possibly_billed"`
	MaxBilled      int           `json:"max_possibly_billed"`
	Calls          Cost          `json:"calls"`
	LastOutcome    tasks.Outcome `json:"last_outcome"`
	LastReason     string        `json:"last_reason"`
	LastAt         *time.Time    `json:"last_at"`
	RequestID      string        `json:"request_id"`
	InFlightUntil  *time.Time    `json:"in_flight_until"`
	Paused         bool          `json:"paused"`
	PausedFor      string        `json:"paused_for"` // the names of the reasons
	Pause          []PauseReason `json:"pause_reasons"`
	Waiting        int64         `json:"queue_waiting"`
	Running        int64         `json:"queue_running"`
	Workers        int           `json:"workers"` // that serve its queue
	Sources        []Source      `json:"sources"`
	SharedBudgets  []Budget      `json:"shared_budgets"` // of all sources and of its group
}

// WhyReport is the tasks that a name stands for, newest first.
type WhyReport struct {
	Tasks []Why `json:"tasks"`
	More  int   `json:"more"` // of the same name, not explained
}

// Why explains the tasks that a name stands for, at most limit. A name is a key or its beginning, a file, a URL or an
// external id. *NotFoundError if there is none.
func (t *Tasks) Why(ctx context.Context, name string, limit int) (WhyReport, error) {
	keys, err := t.find(ctx, name)
	if err != nil {
		return WhyReport{}, err
	}
	g, err := t.gates(ctx)
	if err != nil {
		return WhyReport{}, err
	}
	report := WhyReport{Tasks: []Why{}, More: max(0, len(keys)-limit)}
	for _, key := range keys[:min(len(keys), limit)] {
		e, err := t.gather(ctx, g, key)
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
		Names: []string{}, ExternalIDs: []string{}, Batches: []string{}, Sources: []Source{}, SharedBudgets: budgetsOf(e.Gates.State.Budgets),
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
		w.SharedBudgets = append(w.SharedBudgets, budgetsOf(g.Budgets)...)
	}
	return w
}

// startsText says when a task starts, as far as that is known.
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

// filled is a list without empty and repeated texts.
func filled(list []string) []string {
	return slices.DeleteFunc(distinct(list), func(s string) bool { return s == "" })
}

// gather reads the evidence about a task.
func (t *Tasks) gather(ctx context.Context, g *gates, key string) (Evidence, error) {
	e := Evidence{Key: key, Ahead: -1}
	var err error
	if e.Gates, err = g.TaskState(ctx, key); err != nil {
		return e, err
	}
	if err := t.fromStore(ctx, &e); err != nil {
		return e, err
	}
	if err := t.fromQueue(ctx, &e); err != nil {
		return e, err
	}
	if _, e.Group, err = tasks.SplitQueue(e.Queue); err != nil {
		return e, err
	}
	if group := e.group(); group != nil {
		e.Pinned = cmp.Or(e.Pinned, group.Source)
	}
	if e.Stats, err = t.queue.Stats(ctx, e.Queue); err != nil {
		return e, err
	}
	var state admission.PauseState
	if state, err = t.queue.PauseState(ctx, e.Queue); err != nil {
		return e, err
	}
	e.Pause = withKnownEnds(state, serving(e.Gates.State, e.Queue))
	workers, err := t.queue.Workers(ctx)
	e.Workers = workersOf(workers, e.Queue)
	return e, err
}

func (t *Tasks) fromStore(ctx context.Context, e *Evidence) error {
	var err error
	if e.Status, err = t.Store.TaskStatus(ctx, e.Key); err != nil {
		return err
	}
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

// fromQueue finds the task in the queues that it may be in.
func (t *Tasks) fromQueue(ctx context.Context, e *Evidence) error {
	queues := []string{e.Status.Queue}
	for _, s := range slices.Backward(e.Submissions) {
		queues = append(queues, s.Submission.Queue)
	}
	queues = append(queues, e.path().Queue(e.Gates.Group), e.path().Queue(""))
	queues = slices.DeleteFunc(queues, func(q string) bool { return q == "" })
	e.Queue = queues[0]
	for i, name := range queues {
		if slices.Contains(queues[:i], name) {
			continue
		}
		task, err := t.queue.Task(ctx, name, e.Key)
		if errors.Is(err, queue.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		e.Queue, e.State, e.LastError, e.NextRun = name, task.State, task.LastError, task.NextRun
		if task.State == queue.Pending {
			line, err := t.queue.Line(ctx, name, e.Key)
			e.Since, e.Ahead = line.Since, line.Ahead
			return err
		}
		return nil
	}
	return nil
}
