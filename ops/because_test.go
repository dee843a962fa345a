package ops

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/queue"
	"reprise/store"
	"reprise/tasks"
)

// explain explains evidence at the time now.
func explain(e Evidence) Cause { return Explain(e, utc) }

func newEvidence(change func(*Evidence)) Evidence {
	e := Evidence{
		Key: "recognize_x", Queue: "recognize", State: queue.Pending, Ahead: 0, Workers: 1, Status: store.TaskStatus{Known: true},
		Gates: admission.TaskState{Path: tasks.Recognize, State: admission.State{Now: now, Sources: []admission.SourceState{
			{Source: "main", Path: tasks.Recognize, Concurrency: 10, SuccessesPerMinute: 60},
		}}},
	}
	change(&e)
	return e
}

func TestExplain_NamesWhatATaskWaitsFor(t *testing.T) {
	t.Parallel()
	main := func(e *Evidence) *admission.SourceState { return &e.Gates.State.Sources[0] }
	day := admission.BudgetState{Of: "main/recognize", Period: "day", Resets: now.Add(10 * time.Hour), Cap: 100}
	group := func(e *Evidence) *admission.GroupState {
		e.Group, e.Queue = "archive", "recognize.archive"
		e.Gates.State.Groups = []admission.GroupState{{Name: "archive", Ceiling: 0.5}}
		return &e.Gates.State.Groups[0]
	}
	for name, c := range map[string]struct {
		change  func(*Evidence)
		state   string
		because string
		todo    string
	}{
		"next in line":          {func(*Evidence) {}, "WAITING", "a worker takes it next", ""},
		"behind others":         {func(e *Evidence) { e.Ahead = 2000 }, "WAITING", "2,000 tasks are ahead of it in its queue", ""},
		"no worker":             {func(e *Evidence) { e.Workers = 0 }, "WAITING", "no worker serves queue recognize", "worker run"},
		"no such group":         {func(e *Evidence) { e.Workers, e.Group, e.Queue = 0, "lost", "recognize.lost" }, "WAITING", "there is no group lost", "inspect group set lost weight=1"},
		"no worker for a group": {func(e *Evidence) { group(e); e.Workers = 0 }, "WAITING", "no worker serves queue recognize.archive", "worker run"},
		"paused by an operator": {func(e *Evidence) {
			e.Pause.Reasons = []admission.PauseReason{{Name: admission.ReasonManual, By: "ops", Evidence: "lunch"}}
		}, "WAITING", "paused: manual by ops", "inspect resume recognize"},
		"paused by an operator, and halted": {func(e *Evidence) {
			e.Pause.Reasons = []admission.PauseReason{{Name: "auto:halt", Until: now.Add(time.Hour)}, {Name: admission.ReasonManual, By: "ops"}}
			main(e).Halt = "quota"
		}, "WAITING", "paused: manual by ops", "inspect resume recognize"},
		"paused by a gate": {func(e *Evidence) {
			e.Pause.Reasons = []admission.PauseReason{{Name: "auto:halt", Until: now.Add(time.Hour)}}
			main(e).Halt = "quota"
		}, "WAITING", "source main is HALTED quota", "raise the account's quota, then inspect resume main/recognize"},
		"halted":      {func(e *Evidence) { main(e).Halt = "quota" }, "WAITING", "source main is HALTED quota", "inspect resume main/recognize"},
		"throttled":   {func(e *Evidence) { main(e).ThrottledUntil = now.Add(time.Minute) }, "WAITING", "source main is throttled until", ""},
		"breaker":     {func(e *Evidence) { main(e).BreakerOpen = true }, "WAITING", "breaker open", "inspect resume main/recognize"},
		"permits":     {func(e *Evidence) { main(e).InFlight = 10 }, "WAITING", "all 10 permits of its sources are in use", ""},
		"all permits": {func(e *Evidence) { e.Gates.State.Concurrency, e.Gates.State.InFlight = 5, 5 }, "WAITING", "all 5 permits over all sources", "global.concurrency"},
		"ceiling":     {func(e *Evidence) { group(e).InFlight = 5 }, "WAITING", "group ceiling: archive may use 50 % of 10 permits and has 5 in flight", "group set archive ceiling"},
		"pinned":      {func(e *Evidence) { e.Pinned = "gone" }, "WAITING", "pinned to source gone, which no worker serves", ""},
		"day used up": {func(e *Evidence) {
			day.Spent = 99
			day.Reserved = 1
			main(e).Budgets = []admission.BudgetState{day}
		}, "WAITING", "the units of the day are used up: 100 of 100 (main/recognize)", "inspect limits set main/recognize.units_per_day=…"},
		"in flight": {func(e *Evidence) {
			e.State, e.Gates.InFlight, e.Gates.Source, e.Gates.Units = "active", true, "main", 1
		}, "RUNNING", "its call to main started at", ""},
		"in a slot":         {func(e *Evidence) { e.State = "active" }, "RUNNING", "acquires a permit", ""},
		"in a slot, halted": {func(e *Evidence) { e.State = "active"; main(e).Halt = "quota" }, "RUNNING", "waits: source main is HALTED", "resume"},
		"backoff": {func(e *Evidence) {
			e.State, e.LastError, e.NextRun = "retry", "unavailable: HTTP 503", now.Add(time.Minute)
		}, "WAITING", "unavailable: HTTP 503", ""},
		"not queued":         {func(e *Evidence) { e.State = "" }, "NOT QUEUED", "the task is in no queue", "enqueue its input again"},
		"replay interrupted": {func(e *Evidence) { e.State, e.Status.Generation = "", 1 }, "NOT QUEUED", "its replay was interrupted", "inspect replay recognize_x"},
		"archived by asynq":  {func(e *Evidence) { e.State, e.LastError = "archived", "boom" }, "NOT QUEUED", "asynq archived it without a verdict: boom", "enqueue its input again with --force"},
		"replay archived by asynq": {func(e *Evidence) {
			e.State, e.LastError, e.Status.Generation = "archived", "boom", 1
		}, "NOT QUEUED", "asynq archived it without a verdict: boom", "inspect replay recognize_x"},
		"unknown": {func(e *Evidence) { e.State, e.Status.Known = "", false }, "UNKNOWN", "neither the store nor the queue", ""},
		"done": {func(e *Evidence) {
			e.Status = store.TaskStatus{Known: true, Finished: true, Verdict: tasks.Done, Outcome: tasks.NoMatch}
		}, "DONE", "no_match", ""},
		"held": {func(e *Evidence) {
			e.Status = store.TaskStatus{Known: true, Finished: true, Verdict: tasks.Hold, Reason: "ambiguous: cut"}
		}, "HELD", "ambiguous: cut", "inspect uploads show"},
		"tombstone": {func(e *Evidence) {
			e.Status = store.TaskStatus{Known: true, Finished: true, Verdict: tasks.Archive, Final: true}
		}, "ARCHIVED permanently", "", "--force"},
		"archived": {func(e *Evidence) { e.Status = store.TaskStatus{Known: true, Finished: true, Verdict: tasks.Archive} }, "ARCHIVED", "", "inspect replay"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Explain(newEvidence(c.change), utc)
			require.Equal(t, c.state, got.State)
			require.Contains(t, got.Because, c.because)
			if c.todo == "" {
				require.Empty(t, got.ToDo)
				return
			}
			require.NotEmpty(t, got.ToDo)
			require.Contains(t, got.ToDo[0], c.todo)
		})
	}
}

func TestExplain_EstimatesTheStartFromRateCeilingAndBlocks(t *testing.T) {
	t.Parallel()
	behind := explain(newEvidence(func(e *Evidence) { e.Ahead = 119 }))
	require.Equal(t, now.Add(2*time.Minute), behind.Starts, "120 tasks at 60 a minute")
	require.True(t, behind.Guess)
	half := explain(newEvidence(func(e *Evidence) {
		e.Group, e.Ahead = "archive", 119
		e.Gates.State.Groups = []admission.GroupState{{Name: "archive", Ceiling: 0.5}}
	}))
	require.Equal(t, now.Add(4*time.Minute), half.Starts)
	require.Contains(t, half.Because, "group archive may use 50 %")
	unknown := explain(newEvidence(func(e *Evidence) { e.Ahead = 119; e.Gates.State.Sources[0].SuccessesPerMinute = 0 }))
	require.True(t, unknown.Starts.IsZero())
	require.Equal(t, "unknown", startsText(unknown, utc))
	blocked := explain(newEvidence(func(e *Evidence) {
		e.Gates.State.Sources[0].Halt, e.Gates.State.Sources[0].ProbeAt = "quota", now.Add(time.Hour)
		e.Gates.State.Sources = append(e.Gates.State.Sources, admission.SourceState{Source: "spare", ThrottledUntil: now.Add(time.Minute)})
	}))
	require.Equal(t, now.Add(time.Minute), blocked.Starts, "the first source that opens")
}
