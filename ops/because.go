package ops

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/admission"
	"reprise/internal/queue"
	"reprise/internal/text"
	"reprise/tasks"
)

// Explain returns why a task is where it is, when it starts and what to do. It is pure: equal evidence and times give
// equal sentences. t formats times, and t.Now is the time of the evidence.
func Explain(e Evidence, t text.Times) Cause {
	switch {
	case e.finished():
		return ended(e)
	case e.State == queue.Active:
		return running(e, t)
	case e.State.Waits():
		c := waits(e, t)
		c.State = "WAITING"
		return c
	}
	return notQueued(e)
}

// ended explains a task that has its verdict.
func ended(e Evidence) Cause {
	st := e.Status
	reason := text.Printable(cmp.Or(st.Reason, string(st.Outcome)))
	switch {
	case st.Verdict == tasks.Done:
		return Cause{State: "DONE", Because: strings.TrimSpace(string(st.Outcome) + " " + text.Printable(describe(st)))}
	case st.Verdict == tasks.Hold:
		return Cause{State: "HELD", Because: reason, ToDo: []string{"an operator decides: inspect uploads show " + e.Key}}
	case st.Final:
		return Cause{State: "ARCHIVED permanently", Because: reason, ToDo: []string{"enqueue its input again with --force, which is billed again"}}
	}
	c := Cause{State: "ARCHIVED", Because: reason, ToDo: []string{"inspect replay " + e.Key}}
	if st.Outcome.RefusesAccount() {
		accountRefused(e, &c)
	}
	return c
}

// accountRefused sets the next step of a task that was archived because of its account. While every source is halted, a
// replay would be archived again.
func accountRefused(e Evidence, c *Cause) {
	sources := e.usable()
	if len(sources) == 0 || slices.ContainsFunc(sources, func(st admission.SourceState) bool { return st.Halt == "" }) {
		return
	}
	next := sources[0]
	if e.LastCall != nil {
		if i := slices.IndexFunc(sources, func(st admission.SourceState) bool { return st.Source == e.LastCall.Source }); i >= 0 {
			next = sources[i]
		}
	}
	c.Because += "; workers replay it once an account takes calls again"
	c.ToDo = []string{haltStep(next)}
}

// running explains a task that a worker runs.
func running(e Evidence, t text.Times) Cause {
	if g := e.Gates; g.InFlight {
		return Cause{State: "RUNNING", Because: fmt.Sprintf("its call to %s started at %s, %s reserved",
			g.Source, t.At(g.Since), text.Count(g.Units, "unit", "units"))}
	}
	c := blocked(e, t)
	switch {
	case c.Because != "":
		c.Because = "a worker has it in a slot and waits: " + c.Because
	case e.InList:
		c.Because = "a worker has it in a slot"
	default:
		c.Because = "a worker has it in a slot and acquires a permit"
	}
	c.State = "RUNNING"
	return c
}

// waits explains a queued task that no worker runs. Of several reasons it returns the one that lasts longest.
func waits(e Evidence, t text.Times) Cause {
	if c, paused := pausedByOperator(e, t); paused {
		return c
	}
	switch {
	case e.Workers == 0 && e.Group != "" && e.group() == nil:
		return Cause{
			Because: "no worker serves queue " + e.Queue + ": there is no group " + e.Group, When: "when the group exists",
			ToDo: []string{"inspect group set " + e.Group + " weight=1"},
		}
	case e.Workers == 0:
		return Cause{Because: "no worker serves queue " + e.Queue + " on this Redis", When: "when a worker serves the queue", ToDo: []string{"start one: worker run"}}
	}
	c := blocked(e, t)
	if c.Because == "" && e.Pause.Paused() {
		c = pausedByGate(e, t)
	}
	if e.State != queue.Pending {
		if own := delayed(e); c.Because == "" || !c.lasts(own) {
			return own
		}
		return c
	}
	switch {
	case c.Because == "":
		c.Because = inLine(e)
	case e.Ahead > 0:
		c.Because += fmt.Sprintf("; %s ahead of it", text.Count(e.Ahead, "task is", "tasks are"))
	}
	if rate := perMinute(e, t.Now); c.Starts.IsZero() && c.When == "" && rate > 0 && e.Ahead >= 0 {
		c.Starts, c.Guess = t.Now.Add(minutes(e.Ahead+1, rate)), true
	}
	return c
}

// delayed explains a task that is scheduled for a later time. It omits the wait from the last refusal, because a
// gate that still blocks the task is reported by an earlier check.
func delayed(e Evidence) Cause {
	c := Cause{Because: cmp.Or(text.Printable(e.LastError), "it was delayed"), Starts: e.NextRun}
	if refusal, ok := strings.CutPrefix(e.LastError, string(tasks.Refused)+": "); ok {
		refusal, _, _ = strings.Cut(refusal, "; ")
		refusal, _, _ = strings.Cut(refusal, " opens in ")
		c.Because = "it tries again to acquire a permit; the last refusal was: " + text.Printable(refusal)
	}
	return c
}

// pausedByOperator explains a queue that an operator paused, with inspect or in asynq's web UI.
func pausedByOperator(e Evidence, t text.Times) (Cause, bool) {
	c := Cause{When: "when an operator resumes the queue", ToDo: []string{"inspect resume " + e.Queue}}
	manual := admission.PauseState{}
	for _, r := range e.Pause.Reasons {
		if r.Name == admission.ReasonManual {
			manual.Reasons = append(manual.Reasons, r)
		}
	}
	if len(manual.Reasons) == 0 && (e.Pause.Paused() || !e.Stats.Paused) {
		return c, false
	}
	c.Because = "its queue is paused: " + pauseText(manual, true, t)
	if end := pauseEnds(manual); !end.IsZero() {
		c.When, c.Starts = "", end
	}
	return c, true
}

// pausedByGate explains an automatic pause if no gate blocks every call: a rate is used up, or AudD refused a token.
func pausedByGate(e Evidence, t text.Times) Cause {
	c := Cause{Because: "its queue is paused: " + pauseText(e.Pause, true, t), Starts: pauseEnds(e.Pause), Guess: true}
	for _, st := range e.usable() {
		if st.LastRefusedToken != "" && e.Pause.Has(autoHalt) {
			c.Starts, c.When = time.Time{}, "when a worker has another token"
			c.ToDo = []string{"fix the token, then inspect resume " + targetOf(st).String()}
			break
		}
	}
	return c
}

// inLine returns how many tasks are ahead of a pending task, and its group's ceiling.
func inLine(e Evidence) string {
	if e.Ahead < 0 && e.Stats.Pending > 1 {
		return fmt.Sprintf("pending, along with %s of its queue", text.Count(e.Stats.Pending-1, "other task", "other tasks"))
	}
	if e.Ahead <= 0 {
		return "a worker takes it next"
	}
	line := text.Count(e.Ahead, "task is", "tasks are") + " ahead of it in its queue"
	if g := e.group(); g != nil && g.Ceiling > 0 {
		line += fmt.Sprintf("; group %s may use %.0f %% of rates and permits", g.Name, g.Ceiling*100)
	}
	return line
}

// perMinute estimates how many tasks of the queue run in a minute; 0 = unknown.
func perMinute(e Evidence, now time.Time) int64 {
	var n int64
	for _, st := range e.usable() {
		if gate, _ := st.Blocked(now); gate != "" {
			continue
		}
		n += cmp.Or(st.SuccessesPerMinute, st.RequestsPerMinute)
	}
	if g := e.group(); g != nil && g.Ceiling > 0 {
		n = int64(float64(n) * g.Ceiling)
	}
	return n
}

// notQueued explains an unfinished task that no queue will run.
func notQueued(e Evidence) Cause {
	c := Cause{State: "NOT QUEUED", When: "not without an operator"}
	switch {
	case e.State == queue.Archived:
		c.Because = "asynq archived it without a verdict: " + cmp.Or(text.Printable(e.LastError), "no reason given")
		c.ToDo = []string{"enqueue its input again with --force, which is billed again"}
		if e.Status.Generation > 0 {
			c.ToDo = []string{"inspect replay " + e.Key}
		}
	case e.State == queue.Completed:
		c.Because = "asynq completed it, but this store has no result"
		c.ToDo = []string{"check that this is the workers' store; if it is, enqueue its input again with --force"}
	case !e.Status.Known:
		c.State, c.Because = "UNKNOWN", "the task is in neither the store nor the queue"
	case e.Status.Generation > 0:
		c.Because = "its replay was interrupted before the task was queued"
		c.ToDo = []string{"inspect replay " + e.Key}
	default:
		c.Because = "the task is in no queue: enqueuing was interrupted, or Redis was emptied"
		c.ToDo = []string{"enqueue its input again; a result that exists is not billed again"}
	}
	return c
}
