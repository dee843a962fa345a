package auddsim

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Simulator is an http.Handler that speaks AudD's protocol at /, /enterprise/, /upload/ and /getStreams/, and the
// administration described in doc.go at /_sim/. All methods may be called concurrently.
type Simulator struct {
	cfg     Config
	seq     atomic.Int64
	bill    *ledger
	log     *requestLog
	rules   *ruleSet
	holds   *holds
	tokens  *tokens
	catalog *catalog

	limitMu sync.RWMutex // guards the map, not the limiters
	all     *limiter
	limits  map[string]*limiter // paths with limits of their own

	most   gauge
	mostBy map[string]*gauge

	admin http.Handler
	done  chan struct{}
	close sync.Once
}

// New makes a simulator. It fails on an invalid Config only.
func New(cfg Config) (*Simulator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("check simulator settings: %w", err)
	}
	cfg = cfg.withDefaults()
	s := &Simulator{cfg: cfg, bill: newLedger(), log: newRequestLog(cfg.LogSize), rules: &ruleSet{seed: cfg.Seed}, holds: newHolds(),
		tokens: newTokens(cfg), catalog: newCatalog(cfg.IndexDelay), all: newLimiter(cfg.Limits), limits: map[string]*limiter{},
		mostBy: map[string]*gauge{PathRecognize: {}, PathEnterprise: {}, PathUpload: {}}, done: make(chan struct{})}
	for path, l := range cfg.PathLimits {
		s.limits[path] = newLimiter(l)
	}
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

// EnterpriseHandler has enterprise at its root, as AudD's enterprise host has it, and shares everything with s.
func (s *Simulator) EnterpriseHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, PathEnterprise) })
}

// Close lets go every request that is held or waiting; they get no answer. It does not close a server.
func (s *Simulator) Close() {
	s.close.Do(func() { close(s.done) })
}

func (s *Simulator) limiter(path string) *limiter {
	s.limitMu.RLock()
	defer s.limitMu.RUnlock()
	if l := s.limits[path]; l != nil {
		return l
	}
	return s.all
}

// Rule adds rules at the end of the list, or in the place of a rule with the same id, and returns their ids.
// It panics on an invalid rule, which is a mistake in the caller's text; AddRules returns it instead.
func (s *Simulator) Rule(rules ...Rule) []string {
	ids, err := s.AddRules(rules...)
	if err != nil {
		panic(err)
	}
	return ids
}

// AddRules is Rule with an error: all rules are added or none.
func (s *Simulator) AddRules(rules ...Rule) ([]string, error) {
	for i, r := range rules {
		if err := r.Validate(); err != nil {
			return nil, fmt.Errorf("check rule %d (%s): %w", i+1, r.ID, err)
		}
	}
	return s.rules.add(rules...), nil
}

// RemoveRules drops the rules with these ids, or all without any, and returns how many went.
func (s *Simulator) RemoveRules(ids ...string) int { return s.rules.remove(ids...) }

// Rules lists the rules with their counts.
func (s *Simulator) Rules() []RuleState { return s.rules.states() }

// SetLimits changes the limits of all paths together (path empty), or gives a path limits of its own. Requests in flight
// keep their place; a path that gets its own limits starts with an empty count.
func (s *Simulator) SetLimits(path string, l Limits) error {
	if path != "" && !metered(path) {
		return fmt.Errorf("set limits: %q is not a metered path", path)
	}
	if err := l.Validate(); err != nil {
		return fmt.Errorf("set limits: %w", err)
	}
	s.limitMu.Lock()
	defer s.limitMu.Unlock()
	switch {
	case path == "":
		s.all.set(l)
	case s.limits[path] != nil:
		s.limits[path].set(l)
	default:
		s.limits[path] = newLimiter(l)
	}
	return nil
}

// Limits returns what holds for a path now (empty: for all that have none of their own).
func (s *Simulator) Limits(path string) Limits { return s.limiter(path).get() }

// SetToken adds a token or changes what it may do, from the next request on.
func (s *Simulator) SetToken(t Token) { s.tokens.set(t) }

// Revoke makes a token answer 900 from the next request on.
func (s *Simulator) Revoke(token string) { s.tokens.set(Token{Value: token, Code: 900}) }

// Hold begins to keep matching requests at a stage and returns the hold's id. It panics on an invalid hold.
func (s *Simulator) Hold(h Hold) string {
	if err := h.Validate(); err != nil {
		panic(fmt.Errorf("check hold: %w", err))
	}
	return s.holds.add(h)
}

// Release ends a hold, or all with "", lets go what it holds and returns how many holds ended.
func (s *Simulator) Release(id string) int { return s.holds.release(id) }

// Held lists the requests that are held now.
func (s *Simulator) Held() []Held { return s.holds.current() }

// Bill copies the bill.
func (s *Simulator) Bill() Bill { return s.billed(true) }

// Sums copies the bill without Contents and Sends: cheap enough to poll, however much was sent.
func (s *Simulator) Sums() Bill { return s.billed(false) }

func (s *Simulator) billed(lines bool) Bill {
	b := s.bill.snapshot(lines)
	b.Active = s.log.running()
	b.MaxConcurrent = s.most.max.Load()
	b.MaxConcurrentByPath = map[string]int64{}
	for path, g := range s.mostBy {
		b.MaxConcurrentByPath[path] = g.max.Load()
	}
	return b
}

// Requests lists the requests a filter fits, in order of arrival: the last Config.LogSize finished ones and the running ones.
func (s *Simulator) Requests(f Filter) []Request { return s.log.list(f) }

// Catalog lists the upload slots of all tokens.
func (s *Simulator) Catalog() []Slot { return s.catalog.list() }

// Reset forgets the bill, the log, the catalog and the highest concurrency. Rules, holds, tokens and limits stay.
func (s *Simulator) Reset() {
	s.bill.reset()
	s.log.reset()
	s.catalog.reset()
	s.most.reset()
	for _, g := range s.mostBy {
		g.reset()
	}
}

// readHeaderTimeout ends connections that never send a request.
const readHeaderTimeout = 10 * time.Second
