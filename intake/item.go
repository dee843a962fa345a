package intake

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"reprise/idempotency"
	"reprise/tasks"
)

// Status says what happens to an input.
type Status string

// Every Status. Plan sets ToQueue, AlreadyQueued, AlreadyDone, SameContent or Refused; Enqueue replaces ToQueue by
// Queued or by another one.
const (
	ToQueue       Status = "to_queue"       // Enqueue will queue it
	Queued        Status = "queued"         // Enqueue has queued it
	AlreadyQueued Status = "already_queued" // was in the queue before
	AlreadyDone   Status = "already_done"   // has its result in the store, and needs no call
	SameContent   Status = "same_content"   // shares the task of another input of the plan
	Refused       Status = "refused"        // cannot be queued, see Item.Reason
	Failed        Status = "failed"         // Redis failed; a repeated Enqueue retries it
)

// Statuses lists every Status in a stable order.
var Statuses = []Status{ToQueue, Queued, AlreadyQueued, AlreadyDone, SameContent, Refused, Failed}

// Item is one input and its status.
type Item struct {
	// Name is the input as the user wrote it or as it was found; URLs have no query.
	Name   string
	Status Status
	// Reason is one sentence without the name; set for Refused and Failed.
	Reason string
	// Payload has no key if the input was refused before it was hashed.
	Payload tasks.Payload
	// Units is the most that AudD bills for it; 0 if it needs no call.
	Units int64
	// Outcome and Result are set for AlreadyDone.
	Outcome tasks.Outcome
	Result  json.RawMessage

	// At is its place in a manifest. ExternalID and Metadata come from the manifest.
	At         Position
	ExternalID string
	Metadata   json.RawMessage
	// Warning is one sentence without the name. The input is queued despite it.
	Warning string

	group  string // "" = none
	reopen bool   // the task is settled, and is queued for another call
	first  *Item  // the item whose task this item shares; nil = none

	// The rest is for uploads.
	needsID   bool // Enqueue assigns the audio_id
	sendAgain bool // the upload was sent before, and is sent and billed again
	ledger    ledgerState
}

// ledgerState is the state of a key in the upload ledger.
type ledgerState struct {
	known      bool
	generation int64
	state      idempotency.State // "" counts as Free
	reason     string            // of the last send
}

// slot is an audio_id in the catalog of a source.
type slot struct {
	source string
	id     int64
}

func (s slot) String() string { return fmt.Sprintf("audio_id %d of source %s", s.id, s.source) }

// content identifies audio in the catalog of a source.
type content struct{ source, sha256 string }

func (it *Item) queue() string { return it.Payload.Path.Queue(it.group) }

func (it *Item) slot() slot { return slot{it.Payload.Params.Source, *it.Payload.Params.AudioID} }

func (it *Item) content() content {
	return content{it.Payload.Params.Source, it.Payload.Input.SHA256}
}

// AudioID returns the audio_id of an upload; false while it has none, and for other paths.
func (it *Item) AudioID() (int64, bool) {
	if it.Payload.Path != tasks.Upload || it.Payload.Params.AudioID == nil {
		return 0, false
	}
	return *it.Payload.Params.AudioID, true
}

// build makes the payload and its bound on units. An upload without an audio_id has no key yet. The error is a
// refusal.
func (it *Item) build(req Request, in input, audio tasks.Input) (err error) {
	if req.Path != tasks.Upload {
		it.Payload, it.Units, err = newPayload(req, audio)
		return err
	}
	it.Units = 1
	it.Payload = tasks.Payload{Path: tasks.Upload, Input: audio, Params: tasks.Params{Source: in.source}}
	if in.audioID != nil {
		return it.setID(*in.audioID)
	}
	it.needsID = true
	trial := *it
	return trial.setID(0) // everything else must be valid already
}

// setID completes the payload of an upload.
func (it *Item) setID(id int64) error {
	params := it.Payload.Params
	params.AudioID = &id
	p, _, err := newPayload(Request{Path: tasks.Upload, Params: params}, it.Payload.Input)
	if err == nil {
		it.Payload = p
	}
	return err
}

func newPayload(req Request, audio tasks.Input) (tasks.Payload, int64, error) {
	p, err := tasks.New(req.Path, audio, req.Params, req.MaxUnits)
	if err != nil {
		return p, 0, refusal("cannot be queued: " + err.Error())
	}
	units, bounded := p.Units(false)
	switch {
	case !bounded:
		return p, 0, refusal("has no measurable length, so its cost is not bounded: set a bound with --max-units")
	case req.MaxUnits > 0 && units > req.MaxUnits:
		return p, 0, refusal(fmt.Sprintf("may cost %d units, more than --max-units %d: scan less of it (--every, --skip) or raise --max-units",
			units, req.MaxUnits))
	}
	return p, units, nil
}

// shareID gives an item the audio_id of the item whose task it shares.
func (it *Item) shareID() error {
	if it.Payload.Key != "" || it.first.Payload.Key == "" {
		return nil
	}
	return it.setID(it.first.slot().id)
}

// shareStatus gives an item the status of an item with the same task.
func (it *Item) shareStatus(first *Item) {
	it.Status, it.Reason, it.Outcome, it.Result = first.Status, first.Reason, first.Outcome, first.Result
	it.Units, it.reopen = 0, false
	if first.Status == ToQueue || first.Status == Queued {
		it.Status = SameContent
	}
}

func (it *Item) refuse(format string, args ...any) {
	it.Status, it.Reason, it.Units, it.reopen, it.sendAgain = Refused, fmt.Sprintf(format, args...), 0, false, false
}

// refuseOr refuses the item if err is a refusal, and else returns err.
func (it *Item) refuseOr(err error) error {
	if why, ok := errors.AsType[refusal](err); ok {
		it.refuse("%s", string(why))
		return nil
	}
	return err
}

// Plan is a list of checked inputs. It is not safe for concurrent use.
type Plan struct {
	// Batch is the id under which Enqueue registers the inputs.
	Batch   string
	Request Request
	Items   []Item

	names *servedNames
}

// submissionID sorts in the order of the items.
func (p *Plan) submissionID(i int) string { return fmt.Sprintf("%s-%07d", p.Batch, i+1) }

// Counts are the sums of a plan.
type Counts struct {
	Found    int
	ByStatus map[Status]int
	// Units is the most that AudD bills for the items to queue and queued.
	Units int64
	// LongClips counts recognize inputs known to be longer than the 12 s that AudD analyses.
	LongClips int
	// Resent counts uploads to queue and queued that were sent before: they are billed again.
	Resent int
}

// Counts sums the plan up in its current state.
func (p *Plan) Counts() Counts {
	c := Counts{Found: len(p.Items), ByStatus: map[Status]int{}}
	for i := range p.Items {
		it := &p.Items[i]
		c.ByStatus[it.Status]++
		if it.Status != ToQueue && it.Status != Queued {
			continue
		}
		c.Units += it.Units
		if it.sendAgain {
			c.Resent++
		}
		if p.Request.Path == tasks.Recognize && it.Payload.Input.Seconds > tasks.ChunkSeconds {
			c.LongClips++
		}
	}
	return c
}

// BadItems returns the items that were refused or failed, in their order.
func (p *Plan) BadItems() []Item {
	return slices.DeleteFunc(slices.Clone(p.Items), func(it Item) bool {
		return it.Status != Refused && it.Status != Failed
	})
}
