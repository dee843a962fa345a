package ops

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/store"
	"reprise/tasks"
)

// If only an operator resumes a source, the refusal and the pause of its queue end a day ahead, and the task is due in
// seconds. The task starts at none of these times.
func TestExplain_ReturnsReasonStartAndNextStep(t *testing.T) {
	t.Parallel()
	reset := now.Add(10 * time.Hour)
	day := admission.BudgetState{Of: "main/enterprise", Period: "day", Resets: reset, Cap: 100, Spent: 100}
	put := func(e *Evidence, lastErr string, auto string, until time.Time) {
		e.State, e.NextRun, e.LastError, e.Ahead = "retry", now.Add(7*time.Second), lastErr, -1
		e.Pause.Reasons = []admission.PauseReason{{Name: admission.AutoReason + auto, Until: until, Evidence: "every source is blocked; main opens first, by gate " + auto}}
	}
	for name, c := range map[string]struct {
		change  func(*Evidence, *admission.SourceState)
		because string
		starts  time.Time
		when    string
		todo    string
	}{
		"halted by an operator": {func(e *Evidence, main *admission.SourceState) {
			main.Halt, main.HaltBy, main.HaltSince = "manual: token leaked", "ops", now
			put(e, "refused: every source is blocked; main opens first, by gate halt, in 24h0m0s", "halt", now.Add(24*time.Hour))
		}, "source main is HALTED manual: token leaked by ops since", time.Time{}, "when an operator resumes it", "inspect resume main/enterprise"},
		"halted and probed": {func(e *Evidence, main *admission.SourceState) {
			main.Halt, main.HaltBy, main.HaltSince, main.ProbeAt = "quota", "worker-1", now, now.Add(time.Hour)
			put(e, "refused: every source is blocked; main opens first, by gate halt, in 1h0m0s", "halt", now.Add(time.Hour))
		}, "source main is HALTED quota by worker-1 since", now.Add(time.Hour), "", "raise the account's quota, then inspect resume main/enterprise"},
		"day used up": {func(e *Evidence, main *admission.SourceState) {
			main.Budgets = []admission.BudgetState{day}
			put(e, "refused: every source is blocked; main opens first, by gate units_day, in 9h40m21s", "units_day", reset)
		}, "the units of the day are used up: 100 of 100 (main/enterprise)", reset, "", "inspect limits set main/enterprise.units_per_day=…"},
		"day has too few units left": {func(e *Evidence, main *admission.SourceState) {
			main.Budgets, e.Units = []admission.BudgetState{{Of: day.Of, Period: day.Period, Resets: reset, Cap: 100, Spent: 90}}, 20
			put(e, "refused: gate units_day of source main opens in 9h40m21s", "units_day", reset)
		}, "it needs up to 20 units, and 10 of the day's 100 are left (main/enterprise)", reset, "", "inspect limits set main/enterprise.units_per_day=…"},
		"one source has no units, the other is halted": {func(e *Evidence, main *admission.SourceState) {
			main.Budgets = []admission.BudgetState{day}
			e.Gates.State.Sources = append(e.Gates.State.Sources, admission.SourceState{Source: "two", Path: tasks.Enterprise, Halt: "authentication"})
			put(e, "refused: every source is blocked; main opens first, by gate units_day, in 9h40m21s", "units_day", reset)
		}, "every source is blocked: main units of the day used up, two halted (authentication)", reset, "", "inspect limits set main/enterprise.units_per_day=…"},
		"budget of all, and halted": {func(e *Evidence, main *admission.SourceState) {
			main.Halt = "manual: x"
			e.Gates.State.Budgets = []admission.BudgetState{{Of: "global", Period: "day", Resets: reset, Cap: 5, Spent: 5}}
			put(e, "refused: x", "halt", now.Add(24*time.Hour))
		}, "source main is HALTED manual: x", time.Time{}, "when an operator resumes it", "inspect resume main/enterprise"},
		"open again": {func(e *Evidence, _ *admission.SourceState) {
			put(e, "refused: every source is blocked; main opens first, by gate halt, in 24h0m0s", "halt", now.Add(24*time.Hour))
			e.Pause.Reasons = nil
		}, "it tries again to acquire a permit; the last refusal was: every source is blocked", now.Add(7 * time.Second), "", ""},
		"backoff beyond the gate": {func(e *Evidence, main *admission.SourceState) {
			main.ThrottledUntil = now.Add(time.Second)
			put(e, "unavailable: HTTP 503", "throttle", now.Add(time.Second))
		}, "unavailable: HTTP 503", now.Add(7 * time.Second), "", ""},
		"rate used up": {func(e *Evidence, _ *admission.SourceState) {
			put(e, "refused: the rate of every source is used up; main takes a call first, by gate requests, in 1m10s", "requests", now.Add(70*time.Second))
		}, "its queue is paused: auto:requests", now.Add(70 * time.Second), "", ""},
		"another token": {func(e *Evidence, main *admission.SourceState) {
			main.LastRefusedToken = "abc"
			put(e, "refused: AudD refuses this worker's token; left for another worker", "halt", now.Add(24*time.Hour))
		}, "its queue is paused: auto:halt", time.Time{}, "when a worker has another token", "fix the token, then inspect resume main/enterprise"},
		"no worker": {func(e *Evidence, _ *admission.SourceState) {
			e.State, e.NextRun, e.Workers = "scheduled", now.Add(time.Second), 0
		}, "no worker serves queue enterprise", time.Time{}, "when a worker serves the queue", "start one: worker run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEvidence(func(e *Evidence) { e.Queue, e.Gates.Path = "enterprise", tasks.Enterprise })
			main := &e.Gates.State.Sources[0]
			main.Path = tasks.Enterprise
			c.change(&e, main)
			got := explain(e)
			require.Equal(t, "WAITING", got.State)
			require.Contains(t, got.Because, c.because)
			require.NotContains(t, got.Because, "24h")
			require.Equal(t, c.starts, got.Starts)
			require.Equal(t, c.when, got.When)
			if c.todo == "" {
				require.Empty(t, got.ToDo)
			} else {
				require.Equal(t, []string{c.todo}, got.ToDo)
			}
		})
	}
}

func TestExplain_AdvisesNoReplayWhileEveryAccountIsHalted(t *testing.T) {
	t.Parallel()
	refused := func(halts ...string) Cause {
		return explain(newEvidence(func(e *Evidence) {
			e.Status = store.TaskStatus{Known: true, Finished: true, Verdict: tasks.Archive, Outcome: tasks.Authentication, Reason: "authentication: 901"}
			e.LastCall = &store.Call{Source: "two"}
			e.Gates.State.Sources = nil
			for i, name := range []string{"main", "two"} {
				e.Gates.State.Sources = append(e.Gates.State.Sources, admission.SourceState{Source: name, Path: tasks.Recognize, Halt: halts[i]})
			}
		}))
	}
	require.Equal(t, []string{"fix the token, then inspect resume two/recognize"}, refused("authentication", "authentication").ToDo)
	require.Equal(t, []string{"inspect resume two/recognize"}, refused("authentication", "manual: x").ToDo)
	require.Equal(t, []string{"inspect replay recognize_x"}, refused("", "authentication").ToDo)
}

func TestHalt_HasTheSameTextInSourceStateAndCause(t *testing.T) {
	t.Parallel()
	halted := admission.SourceState{Source: "main", Path: tasks.Recognize, Halt: "quota", HaltBy: "worker_3", HaltSince: now.Add(-time.Minute)}
	require.Equal(t, "HALTED quota by worker_3 since 13:59:00, probe on resume", sourceState(halted, utc))
	cause := explain(newEvidence(func(e *Evidence) { e.Gates.State.Sources = []admission.SourceState{halted} }))
	require.Equal(t, "source main is HALTED quota by worker_3 since 13:59:00", cause.Because)
}
