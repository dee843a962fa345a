package auddsim

import (
	"errors"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// Stages at which a request can be held.
const (
	StageBeforeBody   = "before_body"   // nothing of the audio is read
	StageWithinBody   = "within_body"   // after Hold.After bytes of the body (0: half of it)
	StageAfterBody    = "after_body"    // received and charged, before the latency
	StageBeforeAnswer = "before_answer" // after the latency, nothing of the answer sent
)

// Hold keeps matching requests at a stage until it is released, their client leaves (noticed only once the body was
// read) or the simulator is closed. Criteria are those of Rule.
type Hold struct {
	ID      string `json:"id,omitempty"` // given if empty
	Stage   string `json:"stage"`
	Path    string `json:"path,omitempty"`
	Name    string `json:"name,omitempty"`
	Hash    string `json:"hash,omitempty"`
	URL     string `json:"url,omitempty"`
	Token   string `json:"token,omitempty"`
	AudioID *int64 `json:"audio_id,omitempty"`
	After   int64  `json:"after,omitempty"` // bytes, for within_body
	Times   int    `json:"times,omitempty"` // hold so many requests; 0: all
}

// Held is a request that is held now.
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

// Validate reports what does not fit together.
func (h Hold) Validate() error {
	var errs []error
	switch h.Stage {
	case StageBeforeBody, StageWithinBody:
		if h.Hash != "" {
			errs = append(errs, errors.New("a hold before the end of the body cannot depend on the content's hash"))
		}
	case StageAfterBody, StageBeforeAnswer:
	default:
		errs = append(errs, fmt.Errorf("stage %q is unknown", h.Stage))
	}
	if h.After < 0 || h.Times < 0 {
		errs = append(errs, errors.New("after and times must not be negative"))
	}
	return errors.Join(errs...)
}

type holdState struct {
	Hold
	criteria Rule
	released chan struct{}
	taken    int
}

// holds is the list of holds and of what they hold.
type holds struct {
	any  atomic.Bool // false lets requests pass without the mutex
	mu   sync.Mutex
	list []*holdState
	held map[int64]Held
	next int
}

func newHolds() *holds { return &holds{held: map[int64]Held{}} }

func (h *holds) add(hold Hold) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if hold.ID == "" {
		h.next++
		hold.ID = fmt.Sprintf("hold-%d", h.next)
	}
	h.list = append(h.list, &holdState{Hold: hold, released: make(chan struct{}), criteria: Rule{Path: hold.Path, Name: hold.Name,
		Hash: hold.Hash, URL: hold.URL, Token: hold.Token, AudioID: hold.AudioID}})
	h.any.Store(true)
	return hold.ID
}

// release ends the hold with this id, all with "", and lets go what they hold. It returns how many holds ended.
func (h *holds) release(id string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	var kept []*holdState
	ended := 0
	for _, s := range h.list {
		if id != "" && s.ID != id {
			kept = append(kept, s)
			continue
		}
		close(s.released)
		ended++
	}
	h.list = kept
	h.any.Store(len(kept) > 0)
	return ended
}

// find takes the first hold of the stage that matches. named chooses between holds whose criteria are known from the
// header alone and the others; nil takes both.
func (h *holds) find(stage string, sub *subject, named *bool) *holdState {
	if !h.any.Load() {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.list {
		if s.Stage != stage || named != nil && s.criteria.named() != *named || !s.criteria.matches(sub) || s.Times > 0 && s.taken >= s.Times {
			continue
		}
		s.taken++
		return s
	}
	return nil
}

// early reports whether some hold depends on form fields and acts before the end of the body.
func (h *holds) early() bool {
	if !h.any.Load() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.list {
		if s.criteria.named() && (s.Stage == StageBeforeBody || s.Stage == StageWithinBody) {
			return true
		}
	}
	return false
}

func (h *holds) enter(held Held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held[held.Seq] = held
}

func (h *holds) leave(seq int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, seq)
}

func (h *holds) current() []Held {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]Held, 0, len(h.held))
	for _, x := range h.held {
		out = append(out, x)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Seq < out[j].Seq })
	return out
}
