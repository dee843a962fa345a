package auddsim

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Slot is an audio_id in a token's catalog.
type Slot struct {
	Token   string `json:"token"`
	AudioID int64  `json:"audio_id"`
	Hash    string `json:"hash"` // of its content
	Name    string `json:"name,omitempty"`
	// History has every upload that took effect, the latest last.
	History []SlotWrite `json:"history"`

	indexedAt time.Time // recognize finds it from then on
}

// SlotWrite is one upload that took effect.
type SlotWrite struct {
	At   time.Time `json:"at"`
	Seq  int64     `json:"seq"` // the request
	Hash string    `json:"hash"`
	Name string    `json:"name,omitempty"`
}

// catalog keeps the uploads of every token. Only the same token finds them.
type catalog struct {
	mu    sync.RWMutex
	delay time.Duration
	slots map[uploadKey]*Slot
}

func (c *catalog) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.slots)
}

// put overwrites a slot, as AudD does. Uploading the same content again does not restart the index delay.
func (c *catalog) put(e *Request, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := uploadKey{e.token, *e.AudioID}
	slot := c.slots[key]
	if slot == nil {
		slot = &Slot{Token: e.token, AudioID: *e.AudioID}
		c.slots[key] = slot
	}
	if slot.Hash != e.Hash {
		slot.indexedAt = now.Add(c.delay)
	}
	slot.Hash, slot.Name = e.Hash, e.Name
	slot.History = append(slot.History, SlotWrite{At: now, Seq: e.Seq, Hash: e.Hash, Name: e.Name})
}

// find returns the lowest audio_id of a token that has the content and is indexed.
func (c *catalog) find(token, hash string, now time.Time) (id int64, found bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, s := range c.slots {
		if s.Token == token && s.Hash == hash && !s.indexedAt.After(now) && (!found || s.AudioID < id) {
			id, found = s.AudioID, true
		}
	}
	return id, found
}

// Catalog lists the upload slots of all tokens.
func (c *catalog) Catalog() []Slot {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := make([]Slot, 0, len(c.slots))
	for _, s := range c.slots {
		line := *s
		line.History = slices.Clone(s.History)
		out = append(out, line)
	}
	slices.SortFunc(out, func(a, b Slot) int { return cmp.Or(cmp.Compare(a.AudioID, b.AudioID), cmp.Compare(a.Token, b.Token)) })
	return out
}
