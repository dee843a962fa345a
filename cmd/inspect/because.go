package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/admission"
	"reprise/tasks"
)

// cause is why a task is where it is: one reason, one time, one next step.
type cause struct {
	State   string    // one word in capitals
	Because string    // one sentence
	Starts  time.Time // zero = see When
	Guess   bool      // Starts is an estimate
	When    string    // what must happen first, where no time can be told; "" = not known
	ToDo    []string  // commands and advice, the best first
}

// lasts reports whether c keeps a task longer than other does: what only a
// person ends lasts longest.
func (c cause) lasts(other cause) bool {
	if c.When != "" || other.When != "" {
		return c.When != "" && other.When == ""
	}
	return c.Starts.After(other.Starts)
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
	case "pending", "retry", "scheduled":
		c := s.waits(e)
		c.State = "WAITING"
		return c
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
	c := cause{State: "ARCHIVED", Because: reason, ToDo: []string{"inspect replay " + e.key}}
	if st.Outcome.RefusesAccount() {
		refusedAccount(e, &c)
	}
	return c
}

// refusedAccount says what comes before a replay of a task that was given up
// because of the account: as long as every source is halted, a replay would
// only archive it again.
func refusedAccount(e evidence, c *cause) {
	sources := e.usable()
	if len(sources) == 0 || slices.ContainsFunc(sources, func(st admission.SourceState) bool { return st.Halt == "" }) {
		return
	}
	next := sources[0]
	if last := lastCall(e.calls); last != nil {
		if i := slices.IndexFunc(sources, func(st admission.SourceState) bool { return st.Source == last.Source }); i >= 0 {
			next = sources[i]
		}
	}
	c.Because += "; it is replayed by itself once an account takes calls again"
	c.ToDo = []string{haltStep(next)}
}

// haltStep is what a person does about a halted source.
func haltStep(st admission.SourceState) string {
	resume := fmt.Sprintf("inspect resume %s/%s", st.Source, st.Path)
	switch tasks.Outcome(st.Halt) {
	case tasks.Authentication:
		return "fix the token, then " + resume
	case tasks.Quota:
		return "raise the account's quota, then " + resume
	case tasks.Subscription:
		return "renew the subscription, then " + resume
	case tasks.Blocked:
		return "ask AudD what blocks the account, then " + resume
	default: // a person's halt, or a wrong base URL
		return resume
	}
}

// running explains a task that a worker has in a slot.
func (s *session) running(e evidence) cause {
	snap := e.snapshot
	if snap.InFlight {
		return cause{State: "RUNNING", Because: fmt.Sprintf("a call to %s is under way since %s, %s reserved", snap.Source, s.clock(snap.Since), count(snap.Units, "unit", "units"))}
	}
	c := s.gated(e)
	switch {
	case c.Because != "":
		c.Because = "a worker has it in a slot and waits: " + c.Because
	case e.brief:
		c.Because = "a worker has it in a slot"
	default:
		c.Because = "a worker has it in a slot and asks the gates"
	}
	c.State = "RUNNING"
	return c
}

// waits explains a task in the queue that no worker has. Of several reasons it
// tells the one that lasts longest: the others are over by then.
func (s *session) waits(e evidence) cause {
	if c, paused := s.pausedByPerson(e); paused {
		return c
	}
	if e.workers == 0 && e.group != "" && e.groupState() == nil {
		return cause{
			Because: "no worker serves queue " + e.queue + ": there is no group " + e.group, When: "when there is that group",
			ToDo: []string{"inspect group set " + e.group + " weight=1"},
		}
	}
	if e.workers == 0 {
		return cause{Because: "no worker serves queue " + e.queue + " on this Redis", When: "when a worker serves the queue", ToDo: []string{"start one: worker run"}}
	}
	c := s.gated(e)
	if c.Because == "" && e.pause.Paused() {
		c = s.pausedByGate(e)
	}
	if e.state != "pending" {
		if own := putOff(e); c.Because == "" || !c.lasts(own) {
			return own
		}
		return c
	}
	switch {
	case c.Because == "":
		c.Because = s.before(e)
	case e.ahead > 0:
		c.Because += fmt.Sprintf("; %s before it", count(e.ahead, "task is", "tasks are"))
	}
	if rate := e.perMinute(); c.Starts.IsZero() && c.When == "" && rate > 0 && e.ahead >= 0 {
		c.Starts, c.Guess = e.now.Add(minutes(e.ahead+1, rate)), true
	}
	return c
}

// putOff explains a task that waits for a time of its own. Of what a gate said
// when it last asked, the time is left out: if it still held, it were the cause.
func putOff(e evidence) cause {
	c := cause{Because: firstOf(printable(e.lastErr), "it was put off"), Starts: e.nextTry}
	if said, ok := strings.CutPrefix(e.lastErr, string(tasks.Refused)+": "); ok {
		said, _, _ = strings.Cut(said, "; ")
		said, _, _ = strings.Cut(said, " opens in ")
		c.Because = "it asks again; when it last did: " + printable(said)
	}
	return c
}

// pausedByPerson explains a queue that a person paused, here or on asynq's page.
func (s *session) pausedByPerson(e evidence) (cause, bool) {
	c := cause{When: "when a person resumes the queue", ToDo: []string{"inspect resume " + e.queue}}
	manual := admission.PauseState{}
	for _, r := range e.pause.Reasons {
		if r.Name == admission.ReasonManual {
			manual.Reasons = append(manual.Reasons, r)
		}
	}
	if len(manual.Reasons) == 0 && (e.pause.Paused() || !e.stat.Paused) {
		return c, false
	}
	c.Because = "its queue is paused: " + s.reasons(manual, true)
	if end := pauseEnds(manual); !end.IsZero() {
		c.When, c.Starts = "", end
	}
	return c, true
}

// pausedByGate explains an automatic pause where none of the gates that can be
// seen from here is shut: a rate that is used up, or a token that was refused.
func (s *session) pausedByGate(e evidence) cause {
	c := cause{Because: "its queue is paused: " + s.reasons(e.pause, true), Starts: pauseEnds(e.pause), Guess: true}
	for _, st := range e.usable() {
		if st.LastRefusedToken != "" && e.pause.Has(autoHalt) {
			c.Starts, c.When = time.Time{}, "when a worker has another token"
			c.ToDo = []string{fmt.Sprintf("fix the token, then inspect resume %s/%s", st.Source, st.Path)}
			break
		}
	}
	return c
}

// before says what is before a pending task, and how far its group's ceiling
// lets it.
func (s *session) before(e evidence) string {
	var text string
	switch {
	case e.ahead > 0:
		text = count(e.ahead, "task of its queue is", "tasks of its queue are") + " before it"
	case e.ahead < 0 && e.stat.Pending > 1:
		return fmt.Sprintf("in line with %s of its queue", count(e.stat.Pending-1, "other task", "other tasks"))
	default:
		return "a worker takes it next"
	}
	if g := e.groupState(); g != nil && g.Ceiling > 0 {
		text += fmt.Sprintf("; group %s may use %.0f %% of rates and permits", g.Name, g.Ceiling*100)
	}
	return text
}

// perMinute is about how many tasks of the queue go in a minute; 0 = not known.
func (e evidence) perMinute() int64 {
	var n int64
	for _, st := range e.usable() {
		if gate, _ := st.Blocked(e.now); gate != "" {
			continue
		}
		if st.SuccessesPerMinute > 0 {
			n += st.SuccessesPerMinute
		} else {
			n += st.RequestsPerMinute
		}
	}
	if g := e.groupState(); g != nil && g.Ceiling > 0 {
		n = int64(float64(n) * g.Ceiling)
	}
	return n
}

// unqueued explains an unfinished task that no queue will run.
func (s *session) unqueued(e evidence) cause {
	c := cause{State: "NOT QUEUED", When: "not by itself"}
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
