package auddsim

import (
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
	entry   *Request
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

func (s *Simulator) begin(w http.ResponseWriter, r *http.Request, path string) *call {
	seq := s.seq.Add(1)
	e := &Request{Seq: seq, RequestID: fmt.Sprintf("sim-%08x", seq), At: time.Now(), Path: path, Method: r.Method, Active: true,
		Headers: map[string]string{}}
	for _, name := range s.cfg.LogHeaders {
		if v := r.Header.Get(name); v != "" {
			e.Headers[name] = v
		}
	}
	s.log.begin(e)
	return &call{sim: s, w: w, r: r, entry: e, body: &body{r: r.Body},
		sub: subject{path: path, method: r.Method, header: r.Header, fields: map[string]string{}}}
}

// identify copies what is known about the request into its log entry.
func (c *call) identify() {
	c.sim.log.note(func() {
		e := c.entry
		e.Name, e.AudioID, e.BodyBytes = c.sub.name, c.sub.audioID, c.body.n
		e.token = c.sub.token
		if e.token != "" {
			e.Token = mask(e.token)
		}
		if c.sub.url != "" {
			e.URL = withoutQuery(c.sub.url)
		}
		if c.content != nil && c.body.eof {
			e.Hash = c.content.hash
			c.sub.hash = e.Hash
		}
		if c.refused && c.body.eof {
			e.Complete = true
		}
	})
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

// early runs the rules and holds that act before the end of the body: those with criteria over form fields, or those
// without.
func (c *call) early(needsFields bool) error {
	if c.refused {
		return nil
	}
	if !c.hold(StageBeforeBody, &needsFields) {
		return errStopped
	}
	if h := c.sim.holds.find(StageWithinBody, &c.sub, &needsFields); h != nil {
		c.tripAt(h.After, func() error {
			if !c.park(h) {
				return errStopped
			}
			return nil
		})
	}
	if c.rule != nil {
		return nil
	}
	c.rule = c.sim.rules.pick(&c.sub, func(r *Rule) bool { return r.early() && r.needsFields() == needsFields })
	switch {
	case c.rule == nil:
		return nil
	case c.rule.Early:
		return errAnswer
	case c.rule.Fault == FaultResetBeforeBody:
		return errReset
	}
	c.tripAt(c.rule.After, func() error { return errReset })
	return nil
}

// seeFields runs the rules and holds over form fields once: before the audio is read, or at the end without audio.
func (c *call) seeFields() error {
	if c.fieldsSeen {
		return nil
	}
	c.fieldsSeen = true
	c.body.wholeReads = true
	c.identify()
	c.start()
	return c.early(true)
}

// tripAt adds a trip after so many bytes; 0 = half of the body.
func (c *call) tripAt(after int64, fire func() error) {
	if after == 0 {
		after = max(c.r.ContentLength/2, 1)
	}
	c.body.trips = append(c.body.trips, trip{at: after, fire: fire})
}

// hold holds the call if a hold of the stage matches. false = the call is over.
func (c *call) hold(stage string, needsFields *bool) bool {
	h := c.sim.holds.find(stage, &c.sub, needsFields)
	return h == nil || c.park(h)
}

// park holds the call until its hold is released. false = the call is over.
func (c *call) park(h *holdState) bool {
	c.sim.holds.enter(Held{Hold: h.ID, Stage: h.Stage, Seq: c.entry.Seq, Path: c.sub.path, Name: c.sub.name, Hash: c.sub.hash,
		AudioID: c.sub.audioID, Since: time.Now()})
	defer c.sim.holds.leave(c.entry.Seq)
	return await(c, h.released)
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

// leave gives the place in the concurrency limit back.
func (c *call) leave() {
	if c.limiter == nil {
		return
	}
	c.limiter.leave()
	c.limiter = nil
	c.sim.most.leave()
	c.sim.mostBy[c.sub.path].leave()
}

// finish writes bill and log; only the first call counts. It runs before the last byte of an answer is sent, so that a
// client that has read the answer finds it in the bill and its place free.
func (c *call) finish(outcome string) {
	c.leave()
	if c.finished {
		return
	}
	c.finished = true
	c.sim.log.note(func() {
		e := c.entry
		e.Outcome, e.Took, e.BodyBytes = outcome, time.Since(e.At), c.body.n
		if c.rule != nil {
			e.Rule = c.rule.ID
		}
	})
	c.sim.bill.finished(c.entry)
	c.sim.log.finish(c.entry)
}
