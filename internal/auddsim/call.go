package auddsim

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// call is one request in the simulator. It belongs to one goroutine; other goroutines see only its entry in the log.
type call struct {
	sim     *Simulator
	w       http.ResponseWriter
	r       *http.Request
	entry   *Request // changed by note only
	sub     subject
	body    *body
	content *content
	rule    *Rule // the rule that acts; nil = none
	limits  Limits

	refused    bool     // by the limits; no rule and no hold applies
	fieldsSeen bool     // the rules and holds over form fields have run
	limiter    *limiter // where the call has a place; nil = none
	started    bool     // counted in UploadBill.Started
	finished   bool
}

func (s *Simulator) newCall(w http.ResponseWriter, r *http.Request, path string) *call {
	seq := s.seq.Add(1)
	e := &Request{Seq: seq, RequestID: fmt.Sprintf("sim-%08x", seq), At: time.Now(), Path: path, Method: r.Method, Active: true,
		Headers: map[string]string{}}
	for _, name := range s.cfg.LogHeaders {
		if v := r.Header.Get(name); v != "" {
			e.Headers[name] = v
		}
	}
	s.begin(e)
	return &call{sim: s, w: w, r: r, entry: e, body: &body{r: r.Body},
		sub: subject{Request: e, header: r.Header, fields: map[string]string{}}}
}

// note changes the log entry of the call.
func (c *call) note(change func(e *Request)) {
	c.sim.requestLog.mu.Lock()
	defer c.sim.requestLog.mu.Unlock()
	change(c.entry)
}

func withoutQuery(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(unreadable)"
	}
	u.RawQuery, u.Fragment, u.User = "", "", nil
	return u.String()
}

// start counts the start of an upload once, as soon as its slot is known.
func (c *call) start() {
	if !c.started && c.body.n > 0 {
		c.started = c.sim.bill.started(c.entry)
	}
}

// errReset, errRespond and errStopped end the reading of a body: the rule of the call resets the connection, the rule
// responds early, or the call is over.
var (
	errReset   = errors.New("rule resets the connection")
	errRespond = errors.New("rule responds before the body is read")
	errStopped = errors.New("call has ended")
)

// early runs the rules and holds that act before the end of the body: those with criteria over form fields, or those
// without.
func (c *call) early(needsFields bool) error {
	if c.refused {
		return nil
	}
	fits := func(r *Rule) bool { return r.needsFields() == needsFields }
	if h := c.sim.holds.find(StageBeforeBody, &c.sub, fits); h != nil {
		if err := c.park(h); err != nil {
			return err
		}
	}
	if h := c.sim.holds.find(StageWithinBody, &c.sub, fits); h != nil {
		c.triggerAt(h.After, func() error { return c.park(h) })
	}
	if c.rule != nil {
		return nil
	}
	c.rule = c.sim.pick(&c.sub, func(r *Rule) bool { return r.early() && fits(r) })
	switch {
	case c.rule == nil:
		return nil
	case c.rule.Early:
		return errRespond
	case c.rule.Fault == FaultResetBeforeBody:
		return errReset
	}
	c.triggerAt(c.rule.After, func() error { return errReset })
	return nil
}

// seeFields runs the rules and holds over form fields once: before the audio is read, or at the end without audio.
func (c *call) seeFields() error {
	if c.fieldsSeen {
		return nil
	}
	c.fieldsSeen = true
	c.body.wholeReads = true
	c.note(func(e *Request) { e.BodyBytes = c.body.n })
	c.start()
	return c.early(true)
}

// triggerAt adds a trigger after so many bytes; 0 = half of the body.
func (c *call) triggerAt(after int64, fire func() error) {
	if after == 0 {
		after = max(c.r.ContentLength/2, 1)
	}
	c.body.triggers = append(c.body.triggers, trigger{at: after, fire: fire})
}

// pass lets the call pass a stage after its body. A matching hold holds it there, and the fault reset_<stage> of its rule
// resets the connection. false = the call is over.
func (c *call) pass(stage string) bool {
	if h := c.sim.holds.find(stage, &c.sub, func(*Rule) bool { return true }); h != nil && c.park(h) != nil {
		return false
	}
	if c.fault() == "reset_"+Fault(stage) {
		c.reset()
		return false
	}
	return true
}

// park holds the call until its hold is released. It returns errStopped if the call is over.
func (c *call) park(h *holdState) error {
	e := c.entry
	leave := c.sim.enter(Held{Hold: h.ID, Stage: h.Stage, Seq: e.Seq, Path: e.Path, Name: e.Name, Hash: e.Hash, AudioID: e.AudioID,
		Since: time.Now()})
	defer leave()
	if !await(c, h.released) {
		return errStopped
	}
	return nil
}

// wait waits for d. false = the call is over.
func (c *call) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	return await(c, timer.C)
}

// await waits for a value or the close of ch. false = the call is over, because the client has left or the simulator was
// closed.
func await[T any](c *call, ch <-chan T) bool {
	select {
	case <-ch:
		return true
	case <-c.r.Context().Done():
		c.finish(OutcomeClientGone)
	case <-c.sim.done:
		c.finish(OutcomeStopped)
	}
	return false
}

func (c *call) fault() Fault {
	if c.rule == nil {
		return ""
	}
	return c.rule.Fault
}

// finish gives the place in the concurrency limit back and writes bill and log; only the first call counts. It runs before
// the last byte of a response is sent, so that a client that has read the response finds it in the bill and its place free.
func (c *call) finish(outcome string) {
	if c.finished {
		return
	}
	c.finished = true
	c.note(func(e *Request) {
		e.Outcome, e.Took, e.BodyBytes = outcome, time.Since(e.At), c.body.n
		if c.rule != nil {
			e.Rule = c.rule.ID
		}
	})
	c.sim.bill.finished(c.entry, c.limiter != nil)
	if c.limiter != nil {
		c.limiter.leave() // after the bill: the next request must not count as concurrent with this one
	}
	c.sim.requestLog.finish(c.entry)
}
