package auddsim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// subject is a request as rules and holds match it. Fields of Request are empty until they were read.
type subject struct {
	*Request
	header http.Header
	fields map[string]string // form and query fields read so far
}

// RuleState is a rule with its counts.
type RuleState struct {
	Rule Rule  `json:"rule"`
	Seen int64 `json:"seen"` // matching requests
	Used int64 `json:"used"` // those it acted on
}

// ruleState guards the counts of one rule. The rule itself does not change.
type ruleState struct {
	RuleState
	mu    sync.Mutex
	byKey map[string]int64 // matching requests by Rule.Per
}

// ruleSet has the list of rules. A change replaces the list as a whole.
type ruleSet struct {
	mu   sync.RWMutex
	list []*ruleState
	next int
	seed uint64
}

func (s *ruleSet) current() []*ruleState {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.list
}

func (s *ruleSet) add(rules ...Rule) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.list)
	ids := make([]string, 0, len(rules))
	for _, r := range rules {
		if r.ID == "" {
			s.next++
			r.ID = fmt.Sprintf("rule-%d", s.next)
		}
		ids = append(ids, r.ID)
		state := &ruleState{RuleState: RuleState{Rule: r}, byKey: map[string]int64{}}
		if i := slices.IndexFunc(list, func(old *ruleState) bool { return old.Rule.ID == r.ID }); i >= 0 {
			list[i] = state
		} else {
			list = append(list, state)
		}
	}
	s.list = list
	return ids
}

// RemoveRules removes the rules with these ids, or all without ids, and returns how many.
func (s *ruleSet) RemoveRules(ids ...string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.list)
	s.list = slices.DeleteFunc(slices.Clone(s.list), func(r *ruleState) bool { return len(ids) == 0 || slices.Contains(ids, r.Rule.ID) })
	return before - len(s.list)
}

// Rules lists the rules with their counts.
func (s *ruleSet) Rules() []RuleState {
	out := []RuleState{}
	for _, r := range s.current() {
		r.mu.Lock()
		out = append(out, r.RuleState)
		r.mu.Unlock()
	}
	return out
}

// pick returns the first rule that passes the filter, matches and acts on this request.
func (s *ruleSet) pick(sub *subject, filter func(*Rule) bool) *Rule {
	for i, r := range s.current() {
		if filter(&r.Rule) && r.Rule.matches(sub) && r.take(sub, s.seed+uint64(i)) {
			return &r.Rule
		}
	}
	return nil
}

func (r *Rule) matches(sub *subject) bool {
	switch {
	case r.Path != "" && r.Path != sub.Path,
		r.Method != "" && r.Method != sub.Method,
		r.Name != "" && (sub.Name == "" || !globMatch(r.Name, sub.Name)),
		r.Hash != "" && (sub.Hash == "" || !strings.HasPrefix(sub.Hash, strings.ToLower(r.Hash))),
		r.URL != "" && (sub.fields["url"] == "" || !globMatch(r.URL, sub.fields["url"])),
		r.Token != "" && r.Token != sub.token,
		r.AudioID != nil && (sub.AudioID == nil || *sub.AudioID != *r.AudioID):
		return false
	}
	for name, pattern := range r.Headers {
		if !globMatch(pattern, sub.header.Get(name)) {
			return false
		}
	}
	for name, pattern := range r.Fields {
		if value, ok := sub.fields[name]; !ok || !globMatch(pattern, value) {
			return false
		}
	}
	return true
}

// take counts a matching request and reports whether the rule acts on it.
func (r *ruleState) take(sub *subject, seed uint64) bool {
	key := ""
	switch r.Rule.Per {
	case PerName:
		key = sub.Name + sub.fields["url"]
	case PerContent:
		key = sub.Hash
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Seen++
	r.byKey[key]++
	n := r.byKey[key] - int64(r.Rule.Skip)
	if n <= 0 || r.Rule.Times > 0 && n > int64(r.Rule.Times) {
		return false
	}
	if r.Rule.Probability > 0 && coin(seed, uint64(r.Seen)) >= r.Rule.Probability {
		return false
	}
	r.Used++
	return true
}

// coin is an evenly distributed number in [0, 1) that depends only on its arguments.
func coin(seed, n uint64) float64 {
	return float64(mix(seed^mix(n))>>11) / (1 << 53)
}

// mix is the finalizer of SplitMix64, a fast permutation of uint64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
