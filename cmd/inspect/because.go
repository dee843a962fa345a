package main

import (
	"fmt"
	"strings"
	"time"

	"reprise/admission"
	"reprise/tasks"
)

// cause is why a task is where it is.
type cause struct {
	State   string    // one word in capitals
	Because string    // one sentence
	Starts  time.Time // zero = not known, or nothing will start
	Guess   bool      // Starts is an estimate
	ToDo    []string  // commands and advice, the best first
}

// because explains the evidence. It is pure, so that its sentences are tested
// without a queue.
func (s *session) because(e evidence) cause {
	if e.finished() {
		return s.ended(e)
	}
	switch e.state {
	case "active":
		return s.running(e)
	case "retry", "scheduled":
		c := cause{State: "WAITING", Because: firstOf(printable(e.lastErr), "it was put off"), Starts: e.nextTry}
		if e.pause.Paused() {
			c.Because += "; and its queue is paused: " + s.reasons(e.pause, true)
			c.ToDo = pauseHelp(e)
		}
		return c
	case "pending":
		return s.pending(e)
	}
	return s.unqueued(e)
}

// ended explains a task that has its verdict.
func (s *session) ended(e evidence) cause {
	st := e.standing
	reason := printable(firstOf(st.Reason, string(st.Outcome)))
	switch {
	case st.Verdict == tasks.Done:
		return cause{State: "DONE", Because: strings.TrimSpace(string(st.Outcome) + " " + printable(describe(st)))}
	case st.Verdict == tasks.Hold:
		return cause{State: "HELD", Because: reason, ToDo: []string{"a person decides: inspect uploads show " + e.key}}
	case st.Final:
		return cause{State: "ARCHIVED for good", Because: reason, ToDo: []string{"only enqueue --force pays for it again"}}
	}
	return cause{State: "ARCHIVED", Because: reason, ToDo: []string{"inspect replay " + e.key}}
}

// running explains a task that a worker has in a slot.
func (s *session) running(e evidence) cause {
	snap := e.snapshot
	if snap.InFlight {
		return cause{State: "RUNNING", Because: fmt.Sprintf("a call to %s is under way since %s, %s reserved", snap.Source, s.clock(snap.Since), count(snap.Units, "unit", "units"))}
	}
	c := s.gated(e)
	if c.Because == "" {
		c.Because = "a worker has it in a slot and asks the gates"
	} else {
		c.Because = "a worker has it in a slot and waits: " + c.Because
	}
	c.State = "RUNNING"
	return c
}

// pending explains a task that no worker has taken yet.
func (s *session) pending(e evidence) cause {
	switch {
	case e.pause.Paused() || e.stat.Paused:
		return cause{State: "WAITING", Because: "its queue is paused: " + s.reasons(e.pause, true), Starts: pauseEnds(e.pause), Guess: true, ToDo: pauseHelp(e)}
	case e.workers == 0:
		return cause{State: "WAITING", Because: fmt.Sprintf("no worker serves queue %s on this Redis", e.queue), ToDo: []string{"start one: worker run"}}
	}
	c := s.gated(e)
	c.State = "WAITING"
	if c.Because == "" {
		c.Because = "a worker takes it next"
		if e.ahead > 0 {
			c.Because = s.before(e)
		}
	} else if e.ahead > 0 {
		c.Because += fmt.Sprintf("; %s before it", count(e.ahead, "task is", "tasks are"))
	}
	if rate := e.perMinute(); c.Starts.IsZero() && rate > 0 && e.ahead >= 0 {
		c.Starts, c.Guess = e.now.Add(minutes(e.ahead+1, rate)), true
	}
	return c
}

// before says what is before the task, and how far its group's ceiling lets it.
func (s *session) before(e evidence) string {
	text := count(e.ahead, "task of its queue is", "tasks of its queue are") + " before it"
	if g := e.groupState(); g != nil && g.Share > 0 {
		text += fmt.Sprintf("; group %s may use %.0f %% of rates and permits", g.Name, g.Share*100)
	}
	return text
}

// perMinute is about how many tasks of the queue go in a minute; 0 = not known.
func (e evidence) perMinute() int64 {
	var n int64
	for _, st := range e.usable() {
		if gate, _ := st.Shut(e.now); gate != "" {
			continue
		}
		if st.SuccessPerMin > 0 {
			n += st.SuccessPerMin
		} else {
			n += st.PerMinute
		}
	}
	if g := e.groupState(); g != nil && g.Share > 0 {
		n = int64(float64(n) * g.Share)
	}
	return n
}

// unqueued explains an unfinished task that no queue will run.
func (s *session) unqueued(e evidence) cause {
	c := cause{State: "NOT QUEUED"}
	switch {
	case e.state == "archived":
		c.Because = "the queue gave it up on its own: " + firstOf(printable(e.lastErr), "no reason kept")
		c.ToDo = []string{"run it from the web UI, or enqueue it again with --force"}
	case e.state == "completed":
		c.Because = "the queue ran it to its end, but this store has no result of it"
		c.ToDo = []string{"is this the workers' store? else enqueue it again with --force"}
	case !e.standing.Known:
		c.State, c.Because = "UNKNOWN", "neither the store nor the queue has it"
	case e.standing.Generation > 0:
		c.Because = "its replay was cut short before it was queued"
		c.ToDo = []string{"inspect replay " + e.key}
	default:
		c.Because = "no queue has it: enqueuing was cut short, or Redis was emptied"
		c.ToDo = []string{"enqueue the input again: what is done is not paid again"}
	}
	return c
}

func pauseEnds(p admission.PauseState) time.Time {
	var end time.Time
	for _, r := range p.Reasons {
		if r.Until.IsZero() {
			return time.Time{}
		}
		if r.Until.After(end) {
			end = r.Until
		}
	}
	return end
}

// pauseHelp names what ends each reason.
func pauseHelp(e evidence) []string {
	var out []string
	if e.pause.Has(admission.ReasonManual) || !e.pause.Paused() {
		out = append(out, "inspect resume "+e.queue)
	}
	for _, st := range e.usable() {
		if st.Halt != "" || st.BreakerOpen {
			out = append(out, fmt.Sprintf("inspect resume %s/%s", st.Source, st.Path))
		}
	}
	return out
}
