package auddsim

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
)

// Simulator is an http.Handler that speaks AudD's protocol at /, /enterprise/, /upload/ and /getStreams/, and serves the
// administration of doc.go at /_sim/. All methods may be called concurrently.
type Simulator struct {
	*requestLog
	*ruleSet
	*holds
	*tokens
	*catalog

	cfg  Config
	seq  atomic.Int64
	bill *ledger

	limitMu sync.RWMutex        // guards the map, not the limiters
	limits  map[string]*limiter // by path; "" has the limits of all paths without their own

	admin http.Handler
	done  chan struct{}
	close sync.Once
}

// Close ends every request that is held or waits, without a response. It does not close a server.
func (s *Simulator) Close() {
	s.close.Do(func() { close(s.done) })
}

func (s *Simulator) limiter(path string) *limiter {
	s.limitMu.RLock()
	defer s.limitMu.RUnlock()
	if l := s.limits[path]; l != nil {
		return l
	}
	return s.limits[""]
}

// Rule adds rules at the end of the list and returns their ids. A rule with the id of an existing one replaces it. It
// panics on an invalid rule.
func (s *Simulator) Rule(rules ...Rule) []string {
	if err := validateRules(rules); err != nil {
		panic(err)
	}
	return s.ruleSet.add(rules...)
}

// SetLimits changes the limits of all paths together (path ""), or gives a path limits of its own. Requests in flight
// keep their places. A path with its first own limits counts from zero.
func (s *Simulator) SetLimits(path string, l Limits) error {
	if path != "" && !metered(path) {
		return fmt.Errorf("set limits: %q is not a metered path", path)
	}
	if err := l.Validate(); err != nil {
		return fmt.Errorf("set limits: %w", err)
	}
	s.limitMu.Lock()
	defer s.limitMu.Unlock()
	if own := s.limits[path]; own != nil {
		own.set(l)
	} else {
		s.limits[path] = newLimiter(l)
	}
	return nil
}

// Limits returns the current limits of a path; "" = those of all paths without their own.
func (s *Simulator) Limits(path string) Limits { return s.limiter(path).get() }

// Hold holds matching requests at a stage and returns the id of the hold. It panics on an invalid hold.
func (s *Simulator) Hold(h Hold) string {
	if err := h.Validate(); err != nil {
		panic(fmt.Errorf("check hold: %w", err))
	}
	return s.holds.add(h)
}

// Bill copies the bill.
func (s *Simulator) Bill() Bill { return s.billed(true) }

// Sums copies the bill without Contents and Uploads. It is cheap enough to poll, however many requests there were.
func (s *Simulator) Sums() Bill { return s.billed(false) }

func (s *Simulator) billed(lines bool) Bill {
	b := s.bill.snapshot(lines)
	b.Active = s.running()
	return b
}

// Reset clears the bill, the log, the catalog and the maximum concurrency. Rules, holds, tokens and limits stay.
func (s *Simulator) Reset() {
	s.bill.reset()
	s.requestLog.reset()
	s.catalog.reset()
}
