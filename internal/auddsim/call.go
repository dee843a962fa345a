package auddsim

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// call is one request on its way through the simulator. It belongs to one goroutine; what others see of it is entry,
// which is written through the log.
type call struct {
	sim     *Simulator
	w       http.ResponseWriter
	r       *http.Request
	entry   *Request
	sub     subject
	body    *body
	content *content
	rule    *Rule // the one that acts, if any
	limits  Limits

	refused  bool     // by the limits: rules and holds are not asked
	namedRun bool     // what depends on form fields was looked at
	limiter  *limiter // where to leave; nil: nothing to leave
	started  bool     // counted in Send.Started
	finished bool
}

// serve runs one request of a path.
func (s *Simulator) serve(w http.ResponseWriter, r *http.Request, path string) {
	c := s.begin(w, r, path)
	defer c.finish(OutcomeStopped)
	if metered(path) {
		l := s.limiter(path)
		limits, ok := l.admit()
		c.limits = limits
		if !ok {
			c.refuse()
			return
		}
		c.limiter = l
		s.most.enter()
		s.mostBy[path].enter()
	}
	c.run()
}

func (s *Simulator) begin(w http.ResponseWriter, r *http.Request, path string) *call {
	seq := s.seq.Add(1)
	e := &Request{Seq: seq, RequestID: fmt.Sprintf("sim-%08x", seq), At: time.Now(), Path: path, Method: r.Method, Active: true}
	for _, name := range s.cfg.LogHeaders {
		if v := r.Header.Get(name); v != "" {
			if e.Headers == nil {
				e.Headers = map[string]string{}
			}
			e.Headers[name] = v
		}
	}
	s.log.begin(e)
	return &call{sim: s, w: w, r: r, entry: e, body: &body{r: r.Body},
		sub: subject{path: path, method: r.Method, header: r.Header, fields: map[string]string{}}}
}

// refuse reads the request, so that its connection lives on, and answers as the limits say.
func (c *call) refuse() {
	c.refused = true
	if c.r.Header.Get("Expect") == "" {
		if err := c.receive(); err != nil {
			c.identify()
			c.finish(OutcomeClientGone)
			return
		}
	}
	c.identify()
	a := answer{status: http.StatusTooManyRequests, body: []byte("Too Many Requests\n"), kind: "text/plain; charset=utf-8", outcome: OutcomeRefused}
	if code := c.limits.Code; code != 0 {
		a = c.codeAnswer(code)
		a.outcome = OutcomeRefused
	}
	if c.limits.Status != 0 {
		a.status = c.limits.Status
	}
	if after := c.limits.RetryAfter; after > 0 {
		a.header = map[string]string{"Retry-After": strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10)}
	}
	c.deliver(a)
}

// run is the story of an admitted request: early rules, the body, the work, the latency, the answer.
func (c *call) run() {
	err := c.early(false)
	if err == nil {
		err = c.receive()
	}
	c.identify()
	c.start()
	switch {
	case errors.Is(err, errReset):
		c.reset()
		return
	case errors.Is(err, errAnswer):
		if c.wait(c.rule.Latency) {
			c.deliver(c.ruledAnswer(nil))
		}
		return
	case err != nil:
		c.finish(OutcomeClientGone)
		return
	}
	c.sim.log.note(func() { c.entry.Complete = true })
	a := c.work()
	if !c.hold(StageAfterBody, nil) {
		return
	}
	if c.fault() == FaultResetAfterBody {
		c.reset()
		return
	}
	if !c.wait(c.latency()) || !c.hold(StageBeforeAnswer, nil) {
		return
	}
	if c.fault() == FaultResetBeforeAnswer {
		c.reset()
		return
	}
	c.deliver(a)
}

func (c *call) fault() Fault {
	if c.rule == nil {
		return ""
	}
	return c.rule.Fault
}

func (c *call) latency() time.Duration {
	if c.rule != nil && c.rule.Latency > 0 {
		return c.rule.Latency
	}
	return c.limits.draw(c.sim.cfg.Seed, c.entry.Seq)
}

// named looks at rules and holds that need form fields, once, before the audio is read (or at the end without audio).
func (c *call) named() error {
	if c.namedRun {
		return nil
	}
	c.namedRun = true
	c.body.cautious = false
	c.identify()
	c.start()
	return c.early(true)
}

// start counts the send of an upload, once, as soon as its slot is known.
func (c *call) start() {
	if !c.started && c.body.n > 0 {
		c.started = c.sim.bill.started(c.entry)
	}
}

// early runs the rules and holds that act before the end of the body: those known from the header alone, or those that
// need form fields.
func (c *call) early(named bool) error {
	if c.refused {
		return nil
	}
	wanted := func(r *Rule) bool { return r.early() && r.named() == named }
	if !named && (c.sim.holds.early() || c.sim.rules.any(func(r *Rule) bool { return r.early() && r.named() })) {
		c.body.cautious = true
	}
	if !c.hold(StageBeforeBody, &named) {
		return errStopped
	}
	if h := c.sim.holds.find(StageWithinBody, &c.sub, &named); h != nil {
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
	c.rule = c.sim.rules.pick(&c.sub, wanted)
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

// tripAt sets a trip after so many bytes, or after half of the body with 0.
func (c *call) tripAt(after int64, fire func() error) {
	if after == 0 {
		after = max(c.r.ContentLength/2, 1)
	}
	c.body.trips = append(c.body.trips, trip{at: after, fire: fire})
}

// identify writes what is known of the request into its log entry.
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

// hold parks the call if a hold of the stage wants it. false: the call is over.
func (c *call) hold(stage string, named *bool) bool {
	h := c.sim.holds.find(stage, &c.sub, named)
	return h == nil || c.park(h)
}

// park keeps the call until its hold is released. false: the client left or the simulator was closed; the call is over.
func (c *call) park(h *holdState) bool {
	c.sim.holds.enter(Held{Hold: h.ID, Stage: h.Stage, Seq: c.entry.Seq, Path: c.sub.path, Name: c.sub.name, Hash: c.sub.hash,
		AudioID: c.sub.audioID, Since: time.Now()})
	defer c.sim.holds.leave(c.entry.Seq)
	select {
	case <-h.released:
		return true
	case <-c.r.Context().Done():
		c.finish(OutcomeClientGone)
	case <-c.sim.done:
		c.finish(OutcomeStopped)
	}
	return false
}

// wait lets d pass. false: the client left or the simulator was closed; the call is over.
func (c *call) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.r.Context().Done():
		c.finish(OutcomeClientGone)
	case <-c.sim.done:
		c.finish(OutcomeStopped)
	}
	return false
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

// finish closes the books on the call; only the first one counts. It runs before the last byte of an answer is sent, so
// that whoever has read an answer finds it in the bill and its place free.
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
