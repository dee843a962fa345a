package auddsim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// The stages at which a request can be held.
const (
	StageBeforeBody   = "before_body"   // before any audio is read
	StageWithinBody   = "within_body"   // after Hold.After bytes of the body (0: half of it)
	StageAfterBody    = "after_body"    // after the body was received and charged, before the latency
	StageBeforeAnswer = "before_answer" // after the latency, before the answer
)

// Hold stops matching requests at a stage until it is released, the client leaves (which is noticed only after the body was
// read) or the simulator is closed. The criteria are those of Rule.
type Hold struct {
	ID      string `json:"id,omitempty"` // empty: hold-N
	Stage   string `json:"stage"`
	Path    string `json:"path,omitempty"`
	Name    string `json:"name,omitempty"`
	Hash    string `json:"hash,omitempty"`
	URL     string `json:"url,omitempty"`
	Token   string `json:"token,omitempty"`
	AudioID *int64 `json:"audio_id,omitempty"`
	After   int64  `json:"after,omitempty"` // bytes, for within_body
	Times   int    `json:"times,omitempty"` // how many requests; 0: all
}

// Held is a request that is held.
type Held struct {
	Hold    string    `json:"hold"`
	Stage   string    `json:"stage"`
	Seq     int64     `json:"seq"`
	Path    string    `json:"path"`
	Name    string    `json:"name,omitempty"`
	Hash    string    `json:"hash,omitempty"`
	AudioID *int64    `json:"audio_id,omitempty"`
	Since   time.Time `json:"since"`
}

// Validate reports every field out of range, and fields that contradict each other.
func (h Hold) Validate() error {
	early := h.Stage == StageBeforeBody || h.Stage == StageWithinBody
	var all checks
	all.require(early || h.Stage == StageAfterBody || h.Stage == StageBeforeAnswer, fmt.Sprintf("stage %q is unknown", h.Stage))
	all.require(!early || h.Hash == "", "a hold before the end of the body cannot depend on the content")
	all.require(h.After >= 0 && h.Times >= 0, "after and times must not be negative")
	return all.err()
}

type holdState struct {
	Hold
	criteria Rule
	released chan struct{}
	taken    int
}

type holds struct {
	mu   sync.Mutex
	list []*holdState
	held map[int64]Held
	next int
}

func (h *holds) add(hold Hold) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if hold.ID == "" {
		h.next++
		hold.ID = fmt.Sprintf("hold-%d", h.next)
	}
	h.list = append(h.list, &holdState{Hold: hold, released: make(chan struct{}), criteria: Rule{Path: hold.Path, Name: hold.Name,
		Hash: hold.Hash, URL: hold.URL, Token: hold.Token, AudioID: hold.AudioID}})
	return hold.ID
}

// Release ends a hold, or all holds for "", and returns how many ended. Their requests go on.
func (h *holds) Release(id string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := len(h.list)
	h.list = slices.DeleteFunc(h.list, func(s *holdState) bool {
		ends := id == "" || s.ID == id
		if ends {
			close(s.released)
		}
		return ends
	})
	return before - len(h.list)
}

// find takes the first matching hold of a stage whose criteria fit.
func (h *holds) find(stage string, sub *subject, fits func(criteria *Rule) bool) *holdState {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.list {
		free := s.Times == 0 || s.taken < s.Times
		if s.Stage == stage && free && fits(&s.criteria) && s.criteria.matches(sub) {
			s.taken++
			return s
		}
	}
	return nil
}

// enter lists a request as held until leave is called.
func (h *holds) enter(held Held) (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held[held.Seq] = held
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.held, held.Seq)
	}
}

// Held lists the requests that are held.
func (h *holds) Held() []Held {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedFunc(maps.Values(h.held), func(a, b Held) int { return cmp.Compare(a.Seq, b.Seq) })
}
