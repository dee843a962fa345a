package auddsim

import (
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
	s := &Simulator{cfg: cfg, bill: newLedger(), log: newRequestLog(cfg.LogSize), rules: &ruleSet{seed: cfg.Seed}, holds: newHolds(),
		tokens: newTokens(cfg), catalog: newCatalog(cfg.IndexDelay), all: newLimiter(cfg.Limits), limits: map[string]*limiter{},
		mostBy: map[string]*gauge{PathRecognize: {}, PathEnterprise: {}, PathUpload: {}}, done: make(chan struct{})}
	s.rules.add(cfg.Rules...)
	s.admin = s.adminHandler()
	return s, nil
}

// ServeHTTP is http.Handler.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := strings.Trim(r.URL.Path, "/"); {
	case path == "_sim" || strings.HasPrefix(path, "_sim/"):
		s.admin.ServeHTTP(w, r)
	case path == "" || path == "recognize":
		s.serve(w, r, PathRecognize)
	case path == "enterprise":
		s.serve(w, r, PathEnterprise)
	case path == "upload":
		s.serve(w, r, PathUpload)
	case path == "getStreams":
		s.serve(w, r, PathStreams)
	default:
		s.serve(w, r, PathOther)
	}
}

// serveEnterprise serves enterprise at the root, as AudD's enterprise host does.
func (s *Simulator) serveEnterprise(w http.ResponseWriter, r *http.Request) {
	s.serve(w, r, PathEnterprise)
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

// refuse reads the request, so that its connection can be used again, and answers as the limits say.
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
	a := answer{status: http.StatusTooManyRequests, body: []byte("Too Many Requests\n"), kind: "text/plain; charset=utf-8"}
	if code := c.limits.Code; code != 0 {
		a = c.codeAnswer(code)
	}
	a.outcome = OutcomeRefused
	if c.limits.Status != 0 {
		a.status = c.limits.Status
	}
	if after := c.limits.RetryAfter; after > 0 {
		a.header = map[string]string{"Retry-After": strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10)}
	}
	c.deliver(a)
}

// run handles an admitted request: early rules, body, work, latency, answer.
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

func (c *call) latency() time.Duration {
	if c.rule != nil && c.rule.Latency > 0 {
		return c.rule.Latency
	}
	return c.limits.draw(c.sim.cfg.Seed, c.entry.Seq)
}
