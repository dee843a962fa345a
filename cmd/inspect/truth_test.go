package main

import (
	"errors"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/store"
	"reprise/tasks"
)

// What a gate says when it refuses a task, and what a worker writes into the
// pause of its queue, end by a day where only a person opens the source; the
// task itself is due in seconds. None of these is when it starts.
func TestOneReasonOneTimeOneNextStep(t *testing.T) {
	t.Parallel()
	s := &session{app: &app{zone: time.UTC}}
	reset := at.Add(10 * time.Hour)
	day := admission.Period{Source: "main", Path: tasks.Enterprise, Start: at.Add(-14 * time.Hour), End: reset}
	put := func(e *evidence, lastErr string, auto string, until time.Time) {
		e.state, e.nextTry, e.lastErr, e.ahead = "retry", at.Add(7*time.Second), lastErr, -1
		e.pause.Reasons = []admission.PauseReason{{Name: admission.AutoReason + auto, Until: until, Evidence: "every source is shut; main opens first, by gate " + auto}}
	}
	for name, c := range map[string]struct {
		change  func(*evidence, *admission.SourceState)
		because string
		starts  time.Time
		when    string
		todo    string
	}{
		"halted by a person": {func(e *evidence, main *admission.SourceState) {
			main.Halt, main.HaltBy, main.HaltSince = "manual:_token_leaked", "ops", at
			put(e, "refused: every source is shut; main opens first, by gate halt, in 24h0m0s", "halt", at.Add(24*time.Hour))
		}, "source main is HALTED manual: token leaked by ops since", time.Time{}, "when a person resumes it", "inspect resume main/enterprise"},
		"halted and probed": {func(e *evidence, main *admission.SourceState) {
			main.Halt, main.HaltBy, main.HaltSince, main.ProbeAt = "quota", "worker-1", at, at.Add(time.Hour)
			put(e, "refused: every source is shut; main opens first, by gate halt, in 1h0m0s", "halt", at.Add(time.Hour))
		}, "source main is HALTED quota by worker-1 since", at.Add(time.Hour), "", "raise the account's quota, then inspect resume main/enterprise"},
		"day used up": {func(e *evidence, main *admission.SourceState) {
			main.Budgets = []admission.BudgetState{{Period: day, Cap: 100, Spent: 100}}
			put(e, "refused: every source is shut; main opens first, by gate units_day, in 9h40m21s", "units_day", reset)
		}, "the units of the day are used up: 100 of 100 (main/enterprise)", reset, "", "inspect limits set main/enterprise.units_per_day=…"},
		"day has too few": {func(e *evidence, main *admission.SourceState) {
			main.Budgets, e.units = []admission.BudgetState{{Period: day, Cap: 100, Spent: 90}}, 20
			put(e, "refused: gate units_day of source main opens in 9h40m21s", "units_day", reset)
		}, "it needs 20 units at most, and 10 of the day's 100 are left (main/enterprise)", reset, "", "inspect limits set main/enterprise.units_per_day=…"},
		"one source has no units, the other is halted": {func(e *evidence, main *admission.SourceState) {
			main.Budgets = []admission.BudgetState{{Period: day, Cap: 100, Spent: 100}}
			e.snapshot.State.Sources = append(e.snapshot.State.Sources, admission.SourceState{Source: "two", Path: tasks.Enterprise, Halt: "authentication"})
			put(e, "refused: every source is shut; main opens first, by gate units_day, in 9h40m21s", "units_day", reset)
		}, "every source is shut: main units of the day used up, two halted (authentication)", reset, "", "inspect limits set main/enterprise.units_per_day=…"},
		"budget of all, and halted": {func(e *evidence, main *admission.SourceState) {
			main.Halt = "manual: x"
			e.snapshot.State.Budgets = []admission.BudgetState{{Period: admission.Period{Start: day.Start, End: reset}, Cap: 5, Spent: 5}}
			put(e, "refused: x", "halt", at.Add(24*time.Hour))
		}, "source main is HALTED manual: x", time.Time{}, "when a person resumes it", "inspect resume main/enterprise"},
		"open again": {func(e *evidence, _ *admission.SourceState) {
			put(e, "refused: every source is shut; main opens first, by gate halt, in 24h0m0s", "halt", at.Add(24*time.Hour))
			e.pause.Reasons = nil
		}, "it asks again; when it last did: every source is shut", at.Add(7 * time.Second), "", ""},
		"backoff beyond the gate": {func(e *evidence, main *admission.SourceState) {
			main.ThrottledUntil = at.Add(time.Second)
			put(e, "unavailable: HTTP 503", "throttle", at.Add(time.Second))
		}, "unavailable: HTTP 503", at.Add(7 * time.Second), "", ""},
		"rate used up": {func(e *evidence, _ *admission.SourceState) {
			put(e, "refused: the rate of every source is used up; main takes a call first, by gate requests, in 1m10s", "requests", at.Add(70*time.Second))
		}, "its queue is paused: auto:requests", at.Add(70 * time.Second), "", ""},
		"another token": {func(e *evidence, main *admission.SourceState) {
			main.LastRefusedToken = "abc"
			put(e, "refused: AudD refuses this worker's token; left for another worker", "halt", at.Add(24*time.Hour))
		}, "its queue is paused: auto:halt", time.Time{}, "when a worker has another token", "fix the token, then inspect resume main/enterprise"},
		"no worker": {func(e *evidence, _ *admission.SourceState) {
			e.state, e.nextTry, e.workers = "scheduled", at.Add(time.Second), 0
		}, "no worker serves queue enterprise", time.Time{}, "when a worker serves the queue", "start one: worker run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEvidence(func(e *evidence) { e.queue, e.snapshot.Path = "enterprise", tasks.Enterprise })
			main := &e.snapshot.State.Sources[0]
			main.Path = tasks.Enterprise
			c.change(&e, main)
			got := s.because(e)
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

func TestAReplayThatWouldArchiveAgainIsNotAdvised(t *testing.T) {
	t.Parallel()
	s := &session{app: &app{zone: time.UTC}}
	refused := func(halts ...string) cause {
		return s.because(newEvidence(func(e *evidence) {
			e.standing = store.TaskStatus{Known: true, Finished: true, Verdict: tasks.Archive, Outcome: tasks.Authentication, Reason: "authentication: 901"}
			e.calls = []store.Call{{Source: "main"}, {Source: "two"}}
			e.snapshot.State.Sources = nil
			for i, name := range []string{"main", "two"} {
				e.snapshot.State.Sources = append(e.snapshot.State.Sources, admission.SourceState{Source: name, Path: tasks.Recognize, Halt: halts[i]})
			}
		}))
	}
	require.Equal(t, []string{"fix the token, then inspect resume two/recognize"}, refused("authentication", "authentication").ToDo)
	require.Equal(t, []string{"inspect resume two/recognize"}, refused("authentication", "manual: x").ToDo)
	require.Equal(t, []string{"inspect replay recognize_x"}, refused("", "authentication").ToDo)
}

func TestWhoActsIsNeverAsked(t *testing.T) {
	t.Parallel()
	env := map[string]string{}
	a := &app{getenv: func(name string) string { return env[name] }}
	require.NotEmpty(t, a.by())
	env["LOGNAME"] = "log"
	require.Equal(t, "log", a.by())
	env["USER"] = "ops"
	require.Equal(t, "ops", a.by())
	a.who = " alice "
	require.Equal(t, "alice", a.by())
	require.Equal(t, "bob", systemUser(&user.User{Username: "bob"}, nil))
	require.Regexp(t, `^uid -?\d+$`, systemUser(nil, errors.New("user: unknown userid 1000")))
}

func TestNamesInListsAreShort(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a.mp3", nameShown("/music/b/a.mp3"))
	require.Equal(t, "–", nameShown(""))
	require.Equal(t, "https://x.test/a.mp3", nameShown("https://x.test/a.mp3"))
	long := nameShown("https://x.test/0123456789012345678901234567890123456789/the-end.mp3")
	require.Len(t, []rune(long), nameWidth)
	require.Regexp(t, `^….*the-end.mp3$`, long)
	require.Equal(t, "recognize_abcdefghij", shortKey("recognize_abcdefghijklmnop"))
	require.Equal(t, "recognize_x", shortKey("recognize_x"))
}

func TestABeginningStandsForOneKeyOrNone(t *testing.T) {
	t.Parallel()
	cfg := store.DefaultConfig()
	cfg.URL = "sqlite:" + filepath.Join(t.TempDir(), "r.db")
	st, err := store.Open(t.Context(), cfg)
	require.NoError(t, err)
	defer st.Close()
	var rows []store.Submission
	for i, key := range []string{"recognize_abcde", "recognize_abcdf", "recognize_abxyz"} {
		rows = append(rows, store.Submission{
			ID: strconv.Itoa(i), Batch: "b", Key: key, Path: tasks.Recognize, Queue: "recognize", Payload: []byte("{}"), At: time.Now(),
		})
	}
	_, err = st.Register(t.Context(), rows)
	require.NoError(t, err)
	s := &session{store: st}
	for name, want := range map[string]string{
		"recognize_abcde": "recognize_abcde", "recognize_abxy": "recognize_abxyz", "recognize_abxy…": "recognize_abxyz",
		"recognize_abx": "recognize_abx", "recognize_": "recognize_", "one.mp3": "one.mp3", // not expanded
	} {
		got, err := s.fullKey(t.Context(), name)
		require.NoError(t, err, name)
		require.Equal(t, want, got)
	}
	_, err = s.fullKey(t.Context(), "recognize_abcd")
	require.EqualError(t, err, "recognize_abcd is the beginning of several keys: recognize_abcde, recognize_abcdf")
}
