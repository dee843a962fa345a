package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/store"
	"reprise/tasks"
)

var at = time.Date(2026, 11, 30, 14, 0, 0, 0, time.UTC)

func newEvidence(change func(*evidence)) evidence {
	e := evidence{
		key: "recognize_x", now: at, queue: "recognize", state: "pending", ahead: 0, workers: 1, standing: store.TaskStatus{Known: true},
		snapshot: admission.TaskState{Path: tasks.Recognize, State: admission.State{Now: at, Sources: []admission.SourceState{
			{Source: "main", Path: tasks.Recognize, Concurrency: 10, SuccessesPerMinute: 60},
		}}},
	}
	change(&e)
	return e
}

func TestBecauseNamesWhatATaskWaitsFor(t *testing.T) {
	t.Parallel()
	s := &session{app: &app{zone: time.UTC}}
	main := func(e *evidence) *admission.SourceState { return &e.snapshot.State.Sources[0] }
	day := admission.BudgetState{Period: admission.Period{Source: "main", Path: tasks.Recognize, Start: at.Add(-14 * time.Hour), End: at.Add(10 * time.Hour)}, Cap: 100}
	group := func(e *evidence) *admission.GroupState {
		e.group, e.queue = "archive", "recognize.archive"
		e.snapshot.State.Groups = []admission.GroupState{{Name: "archive", Ceiling: 0.5}}
		return &e.snapshot.State.Groups[0]
	}
	for name, c := range map[string]struct {
		change  func(*evidence)
		state   string
		because string
		todo    string
	}{
		"next in line":       {func(*evidence) {}, "WAITING", "a worker takes it next", ""},
		"behind others":      {func(e *evidence) { e.ahead = 2000 }, "WAITING", "2,000 tasks of its queue are before it", ""},
		"nobody there":       {func(e *evidence) { e.workers = 0 }, "WAITING", "no worker serves queue recognize", "worker run"},
		"no such group":      {func(e *evidence) { e.workers, e.group, e.queue = 0, "lost", "recognize.lost" }, "WAITING", "there is no group lost", "inspect group set lost weight=1"},
		"nobody for a group": {func(e *evidence) { group(e); e.workers = 0 }, "WAITING", "no worker serves queue recognize.archive", "worker run"},
		"paused by a person": {func(e *evidence) {
			e.pause.Reasons = []admission.PauseReason{{Name: admission.ReasonManual, By: "ops", Evidence: "lunch"}}
		}, "WAITING", "paused: manual by ops", "inspect resume recognize"},
		"paused by a person, and halted": {func(e *evidence) {
			e.pause.Reasons = []admission.PauseReason{{Name: "auto:halt", Until: at.Add(time.Hour)}, {Name: admission.ReasonManual, By: "ops"}}
			main(e).Halt = "quota"
		}, "WAITING", "paused: manual by ops", "inspect resume recognize"},
		"paused by a gate": {func(e *evidence) {
			e.pause.Reasons = []admission.PauseReason{{Name: "auto:halt", Until: at.Add(time.Hour)}}
			main(e).Halt = "quota"
		}, "WAITING", "source main is HALTED quota", "raise the account's quota, then inspect resume main/recognize"},
		"halted":      {func(e *evidence) { main(e).Halt = "quota" }, "WAITING", "source main is HALTED quota", "inspect resume main/recognize"},
		"throttled":   {func(e *evidence) { main(e).ThrottledUntil = at.Add(time.Minute) }, "WAITING", "source main is throttled until", ""},
		"breaker":     {func(e *evidence) { main(e).BreakerOpen = true }, "WAITING", "breaker open", "inspect resume main/recognize"},
		"permits":     {func(e *evidence) { main(e).InFlight = 10 }, "WAITING", "all 10 permits of its sources are in use", ""},
		"all permits": {func(e *evidence) { e.snapshot.State.Concurrency, e.snapshot.State.InFlight = 5, 5 }, "WAITING", "all 5 permits over all sources", "global.concurrency"},
		"ceiling":     {func(e *evidence) { group(e).InFlight = 5 }, "WAITING", "group ceiling: archive may use 50 % of 10 permits and has 5 in flight", "group set archive ceiling"},
		"pinned":      {func(e *evidence) { e.pinned = "gone" }, "WAITING", "pinned to source gone, which no worker has", ""},
		"day used up": {func(e *evidence) {
			day.Spent = 99
			day.Reserved = 1
			main(e).Budgets = []admission.BudgetState{day}
		}, "WAITING", "the units of the day are used up: 100 of 100 (main/recognize)", "inspect limits set main/recognize.units_per_day=…"},
		"in flight": {func(e *evidence) {
			e.state, e.snapshot.InFlight, e.snapshot.Source, e.snapshot.Units = "active", true, "main", 1
		}, "RUNNING", "a call to main is under way", ""},
		"in a slot":         {func(e *evidence) { e.state = "active" }, "RUNNING", "asks the gates", ""},
		"in a slot, halted": {func(e *evidence) { e.state = "active"; main(e).Halt = "quota" }, "RUNNING", "waits: source main is HALTED", "resume"},
		"backoff": {func(e *evidence) {
			e.state, e.lastErr, e.nextTry = "retry", "unavailable: HTTP 503", at.Add(time.Minute)
		}, "WAITING", "unavailable: HTTP 503", ""},
		"not queued":       {func(e *evidence) { e.state = "" }, "NOT QUEUED", "no queue has it", "enqueue the input again"},
		"replay cut short": {func(e *evidence) { e.state, e.standing.Generation = "", 1 }, "NOT QUEUED", "its replay was cut short", "inspect replay recognize_x"},
		"asynq's archive":  {func(e *evidence) { e.state, e.lastErr = "archived", "boom" }, "NOT QUEUED", "gave it up on its own: boom", "--force"},
		"unknown":          {func(e *evidence) { e.state, e.standing.Known = "", false }, "UNKNOWN", "neither the store nor the queue", ""},
		"done": {func(e *evidence) {
			e.standing = store.TaskStatus{Known: true, Finished: true, Verdict: tasks.Done, Outcome: tasks.NoMatch}
		}, "DONE", "no_match", ""},
		"held": {func(e *evidence) {
			e.standing = store.TaskStatus{Known: true, Finished: true, Verdict: tasks.Hold, Reason: "ambiguous: cut"}
		}, "HELD", "ambiguous: cut", "inspect uploads show"},
		"tombstone": {func(e *evidence) {
			e.standing = store.TaskStatus{Known: true, Finished: true, Verdict: tasks.Archive, Final: true}
		}, "ARCHIVED for good", "", "--force"},
		"archived": {func(e *evidence) { e.standing = store.TaskStatus{Known: true, Finished: true, Verdict: tasks.Archive} }, "ARCHIVED", "", "inspect replay"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := s.because(newEvidence(c.change))
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

func TestStartsIsWhatTheGatesSay(t *testing.T) {
	t.Parallel()
	s := &session{app: &app{zone: time.UTC}}
	behind := s.because(newEvidence(func(e *evidence) { e.ahead = 119 }))
	require.Equal(t, at.Add(2*time.Minute), behind.Starts, "120 tasks at 60 a minute")
	require.True(t, behind.Guess)
	half := s.because(newEvidence(func(e *evidence) {
		e.group, e.ahead = "archive", 119
		e.snapshot.State.Groups = []admission.GroupState{{Name: "archive", Ceiling: 0.5}}
	}))
	require.Equal(t, at.Add(4*time.Minute), half.Starts)
	require.Contains(t, half.Because, "group archive may use 50 %")
	unknown := s.because(newEvidence(func(e *evidence) { e.ahead = 119; e.snapshot.State.Sources[0].SuccessesPerMinute = 0 }))
	require.True(t, unknown.Starts.IsZero())
	require.Equal(t, "not known", s.startsText(unknown))
	shut := s.because(newEvidence(func(e *evidence) {
		e.snapshot.State.Sources[0].Halt, e.snapshot.State.Sources[0].ProbeAt = "quota", at.Add(time.Hour)
		e.snapshot.State.Sources = append(e.snapshot.State.Sources, admission.SourceState{Source: "spare", ThrottledUntil: at.Add(time.Minute)})
	}))
	require.Equal(t, at.Add(time.Minute), shut.Starts, "the first source that opens")
}
