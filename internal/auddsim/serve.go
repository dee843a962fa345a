package auddsim

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// New returns a Simulator. The error reports every invalid setting.
func New(cfg Config) (*Simulator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("check simulator settings: %w", err)
	}
	cfg = cfg.withDefaults()
	s := &Simulator{
		cfg: cfg, done: make(chan struct{}), bill: newLedger(), tokens: newTokens(cfg),
		requestLog: &requestLog{size: cfg.LogSize, active: map[int64]*Request{}},
		ruleSet:    &ruleSet{seed: cfg.Seed},
		holds:      &holds{held: map[int64]Held{}},
		catalog:    &catalog{delay: cfg.IndexDelay, slots: map[uploadKey]*Slot{}},
		limits:     map[string]*limiter{"": newLimiter(cfg.Limits)},
	}
	s.ruleSet.add(cfg.Rules...)
	s.admin = s.adminHandler()
	return s, nil
}

// routes are the paths of the URLs, without the slashes around them.
var routes = map[string]string{
	"": PathRecognize, "recognize": PathRecognize, "enterprise": PathEnterprise, "upload": PathUpload, "getStreams": PathStreams,
}

// ServeHTTP is http.Handler.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	url := strings.Trim(r.URL.Path, "/")
	if url == "_sim" || strings.HasPrefix(url, "_sim/") {
		s.admin.ServeHTTP(w, r)
		return
	}
	s.serve(w, r, cmp.Or(routes[url], PathOther))
}

func (s *Simulator) serve(w http.ResponseWriter, r *http.Request, path string) {
	c := s.newCall(w, r, path)
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
		s.bill.admitted(path)
	}
	c.run()
}

// refuse reads the request, so that its connection can be used again, and sends the response that the limits define.
func (c *call) refuse() {
	c.refused = true
	if c.r.Header.Get("Expect") == "" {
		if err := c.receive(); err != nil {
			c.finish(OutcomeClientGone)
			return
		}
	}
	a := response{status: http.StatusTooManyRequests, body: []byte("Too Many Requests\n"), kind: "text/plain; charset=utf-8"}
	if code := c.limits.Code; code != 0 {
		a = c.codeResponse(code)
	}
	a.outcome = OutcomeRefused
	a.status = cmp.Or(c.limits.Status, a.status)
	if after := c.limits.RetryAfter; after > 0 {
		a.header = map[string]string{"Retry-After": strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10)}
	}
	c.deliver(a)
}

// run handles an admitted request: early rules, body, work, latency, response.
func (c *call) run() {
	err := c.early(false)
	if err == nil {
		err = c.receive()
	}
	c.start()
	switch {
	case errors.Is(err, errReset):
		c.reset()
		return
	case errors.Is(err, errRespond):
		if c.wait(c.rule.Latency) {
			c.deliver(c.ruledResponse(nil))
		}
		return
	case err != nil:
		c.finish(OutcomeClientGone)
		return
	}
	a := c.work()
	if c.pass(StageAfterBody) && c.wait(c.latency()) && c.pass(StageBeforeAnswer) {
		c.deliver(a)
	}
}

func (c *call) latency() time.Duration {
	if c.rule != nil && c.rule.Latency > 0 {
		return c.rule.Latency
	}
	return c.limits.draw(c.sim.cfg.Seed, c.entry.Seq)
}
