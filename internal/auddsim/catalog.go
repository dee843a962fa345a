package auddsim

import (
	"sort"
	"sync"
	"time"
)

// Slot is one audio_id of one token's catalog.
type Slot struct {
	Token   string `json:"token"`
	AudioID int64  `json:"audio_id"`
	Hash    string `json:"hash"` // of what is in it now
	Name    string `json:"name,omitempty"`
	// History is every upload that took effect, the latest last.
	History []SlotWrite `json:"history"`
}

// SlotWrite is one upload that took effect.
type SlotWrite struct {
	At   time.Time `json:"at"`
	Seq  int64     `json:"seq"` // the request
	Hash string    `json:"hash"`
	Name string    `json:"name,omitempty"`
}

// catalog keeps the uploads of every token; only the token that uploaded finds them.
type catalog struct {
	mu    sync.RWMutex
	delay time.Duration
	slots map[sendKey]*Slot
	index map[string]map[int64]time.Time // token + hash → audio_id → when it is found
}

func newCatalog(delay time.Duration) *catalog {
	c := &catalog{delay: delay}
	c.reset()
	return c
}

func (c *catalog) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slots, c.index = map[sendKey]*Slot{}, map[string]map[int64]time.Time{}
}

// put overwrites a slot, as AudD does.
func (c *catalog) put(e *Request, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := sendKey{e.token, *e.AudioID}
	slot := c.slots[key]
	if slot == nil {
		slot = &Slot{Token: e.token, AudioID: *e.AudioID}
		c.slots[key] = slot
	}
	if slot.Hash != "" && slot.Hash != e.Hash {
		delete(c.index[e.token+" "+slot.Hash], slot.AudioID)
	}
	slot.Hash, slot.Name = e.Hash, e.Name
	slot.History = append(slot.History, SlotWrite{At: now, Seq: e.Seq, Hash: e.Hash, Name: e.Name})
	at := c.index[e.token+" "+e.Hash]
	if at == nil {
		at = map[int64]time.Time{}
		c.index[e.token+" "+e.Hash] = at
	}
	if _, known := at[slot.AudioID]; !known {
		at[slot.AudioID] = now.Add(c.delay)
	}
}

// find returns the smallest audio_id that holds the content and is indexed by now.
func (c *catalog) find(token, hash string, now time.Time) (int64, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	best, found := int64(0), false
	for id, at := range c.index[token+" "+hash] {
		if !at.After(now) && (!found || id < best) {
			best, found = id, true
		}
	}
	return best, found
}

func (c *catalog) list() []Slot {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := make([]Slot, 0, len(c.slots))
	for _, s := range c.slots {
		line := *s
		line.History = append([]SlotWrite(nil), s.History...)
		out = append(out, line)
	}
	sort.Slice(out, func(i, j int) bool {
		return out[i].AudioID < out[j].AudioID || out[i].AudioID == out[j].AudioID && out[i].Token < out[j].Token
	})
	return out
}
