package intake

import (
	"encoding/json"
	"slices"

	"reprise/tasks"
)

// Status is what becomes of an input.
type Status string

// The closed set of verdicts. A plan holds ToQueue, AlreadyQueued, AlreadyDone, SameContent
// and Refused; Enqueue turns ToQueue into Queued or one of the others.
const (
	ToQueue       Status = "to_queue"       // will be queued
	Queued        Status = "queued"         // is in the queue now
	AlreadyQueued Status = "already_queued" // was in the queue already: nothing to do, nothing paid
	AlreadyDone   Status = "already_done"   // settled: answered from the store, free
	SameContent   Status = "same_content"   // shares the task of another input of this batch
	Refused       Status = "refused"        // see Reason
	Failed        Status = "failed"         // Redis or the store did not take it; running again mends it
)

// Statuses lists every verdict in a stable order.
var Statuses = []Status{ToQueue, Queued, AlreadyQueued, AlreadyDone, SameContent, Refused, Failed}

// Item is one input and what becomes of it.
type Item struct {
	// Name is the input as the user wrote it or as it was found; URLs without query.
	Name   string
	Status Status
	// Reason is one clear sentence without the name; set for Refused and Failed.
	Reason string
	// Payload has a key unless the input was refused before it was hashed.
	Payload tasks.Payload
	// Units is the upper bound of what AudD bills for it, 0 if it will not be called.
	Units int64
	// Outcome and Result are those of a Known item.
	Outcome tasks.Outcome
	Result  json.RawMessage

	// At is its place in a manifest; ExternalID and Metadata come from there.
	At         Position
	ExternalID string
	Metadata   json.RawMessage
	// Warning is one clear sentence without the name; it stops nothing.
	Warning string

	group  string // of its queue; "" = none
	reopen bool   // settled, and to be paid for again
	twin   *Item  // the one whose task it shares, while it is SameContent
	upload upload // what only uploads have
}

// upload is what a plan notes of an upload beside its payload.
type upload struct {
	allot  bool // has no audio_id of its own: Enqueue allots one
	resend bool // was sent before and is sent, and billed, again
	ledger view
}

func (it *Item) queue() string { return it.Payload.Path.Queue(it.group) }

// Plan is a list of inputs, checked. It is not safe for concurrent use.
type Plan struct {
	// Batch names what Enqueue registers.
	Batch   string
	Request Request
	Items   []Item

	names *names // nil = nobody can tell, or nobody asked
}

// Counts sums a plan up.
type Counts struct {
	Found    int
	ByStatus map[Status]int
	// Units is the upper bound for all items with Verdict Queue or Queued.
	Units int64
	// LongClips counts clips for recognize known to be longer than the 12 s that are analysed.
	LongClips int
	// Resent counts uploads with Verdict Queue or Queued that were sent before:
	// they are billed again.
	Resent int
}

// Counts sums the plan up as it stands.
func (p *Plan) Counts() Counts {
	c := Counts{Found: len(p.Items), ByStatus: map[Status]int{}}
	for i := range p.Items {
		it := &p.Items[i]
		c.ByStatus[it.Status]++
		if it.Status != ToQueue && it.Status != Queued {
			continue
		}
		c.Units += it.Units
		if it.upload.resend {
			c.Resent++
		}
		if p.Request.Path == tasks.Recognize && it.Payload.Input.Seconds > tasks.ChunkSeconds {
			c.LongClips++
		}
	}
	return c
}

// BadItems is the items that were refused or failed, in their order.
func (p *Plan) BadItems() []Item {
	return slices.DeleteFunc(slices.Clone(p.Items), func(it Item) bool {
		return it.Status != Refused && it.Status != Failed
	})
}
