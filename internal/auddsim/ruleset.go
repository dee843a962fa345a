package auddsim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// subject is what is known of a request when rules and holds are matched against it.
type subject struct {
	path    string
	method  string
	header  http.Header
	fields  map[string]string // form and query fields read so far
	name    string            // base name of the file
	url     string
	token   string
	hash    string // empty until the body is complete
	audioID *int64
}

// RuleState is a rule with what became of it.
type RuleState struct {
	Rule Rule  `json:"rule"`
	Seen int64 `json:"seen"` // matching requests
	Used int64 `json:"used"` // those it acted on
}

// ruleState counts for one rule. The rule itself never changes.
type ruleState struct {
	Rule
	mu   sync.Mutex
	seen map[string]int64 // by Rule.Per
	all  int64
	used int64
}

// ruleSet is the list of rules, replaced as a whole so that requests read it without a lock.
type ruleSet struct {
	mu   sync.Mutex // writers
	list atomic.Pointer[[]*ruleState]
	next int
	seed uint64
}

func (s *ruleSet) current() []*ruleState {
	if p := s.list.Load(); p != nil {
		return *p
	}
	return nil
}

// add appends rules and returns their ids; a rule with the id of an older one takes its place.
func (s *ruleSet) add(rules ...Rule) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := append([]*ruleState(nil), s.current()...)
	ids := make([]string, 0, len(rules))
	for _, r := range rules {
		if r.ID == "" {
			s.next++
			r.ID = fmt.Sprintf("rule-%d", s.next)
		}
		list = place(list, &ruleState{Rule: r, seen: map[string]int64{}})
		ids = append(ids, r.ID)
	}
	s.list.Store(&list)
	return ids
}

func place(list []*ruleState, r *ruleState) []*ruleState {
	for i, old := range list {
		if old.ID == r.ID {
			list[i] = r
			return list
		}
	}
	return append(list, r)
}

// remove drops the rules with these ids, or all without any, and says how many went.
func (s *ruleSet) remove(ids ...string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.current()
	var list []*ruleState
	for _, r := range old {
		if len(ids) > 0 && !slices.Contains(ids, r.ID) {
			list = append(list, r)
		}
	}
	s.list.Store(&list)
	return len(old) - len(list)
}

func (s *ruleSet) states() []RuleState {
	out := []RuleState{}
	for _, r := range s.current() {
		r.mu.Lock()
		out = append(out, RuleState{Rule: r.Rule, Seen: r.all, Used: r.used})
		r.mu.Unlock()
	}
	return out
}

// pick returns the first rule that passes want, matches and acts this time.
func (s *ruleSet) pick(sub *subject, want func(*Rule) bool) *Rule {
	for i, r := range s.current() {
		if want(&r.Rule) && r.matches(sub) && r.take(sub, s.seed+uint64(i)) {
			return &r.Rule
		}
	}
	return nil
}

// any reports whether some rule passes want.
func (s *ruleSet) any(want func(*Rule) bool) bool {
	for _, r := range s.current() {
		if want(&r.Rule) {
			return true
		}
	}
	return false
}

func (r *Rule) matches(sub *subject) bool {
	switch {
	case r.Path != "" && r.Path != sub.path,
		r.Method != "" && r.Method != sub.method,
		r.Name != "" && (sub.name == "" || !globMatch(r.Name, sub.name)),
		r.Hash != "" && (sub.hash == "" || !strings.HasPrefix(sub.hash, strings.ToLower(r.Hash))),
		r.URL != "" && (sub.url == "" || !globMatch(r.URL, sub.url)),
		r.Token != "" && r.Token != sub.token,
		r.AudioID != nil && (sub.audioID == nil || *sub.audioID != *r.AudioID):
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

// take counts a matching request and decides whether the rule acts on it.
func (r *ruleState) take(sub *subject, seed uint64) bool {
	key := ""
	switch r.Per {
	case PerName:
		key = sub.name + sub.url
	case PerContent:
		key = sub.hash
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all++
	r.seen[key]++
	n := r.seen[key]
	if n <= int64(r.Skip) || r.Times > 0 && n > int64(r.Skip)+int64(r.Times) {
		return false
	}
	if r.Probability > 0 && coin(seed, uint64(r.all)) >= r.Probability {
		return false
	}
	r.used++
	return true
}

// coin is an even number in [0, 1) that depends only on its arguments.
func coin(seed, n uint64) float64 {
	return float64(mix(seed^mix(n))>>11) / (1 << 53)
}

// mix is the finaliser of SplitMix64: a cheap, well spread permutation.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
