package ops

import (
	"context"
	"errors"
	"strings"
	"time"

	"reprise/idempotency"
	"reprise/idempotency/redismark"
	"reprise/internal/text"
	"reprise/tasks"
)

// Uploads reports on the upload ledger, resolves uncertain uploads and adopts a restored ledger.
type Uploads struct{ *base }

// Upload is an upload in its current generation.
type Upload struct {
	Key        string            `json:"key"`
	Source     string            `json:"source"`
	AudioID    int64             `json:"audio_id"`
	SHA256     string            `json:"sha256"` // "" = a URL
	Generation int64             `json:"generation"`
	State      idempotency.State `json:"state"`
	Since      *time.Time        `json:"since"`    // first claimed or sent
	Replaced   bool              `json:"replaced"` // the slot belongs to another key now
	Send       *Send             `json:"send"`     // null = nothing was sent in this generation
}

// Send is one send of an upload.
type Send struct {
	Generation int64             `json:"generation"`
	State      idempotency.State `json:"state"`
	AttemptID  string            `json:"attempt_id"`
	SentAt     *time.Time        `json:"sent_at"`
	EndedAt    *time.Time        `json:"ended_at"`
	Outcome    tasks.Outcome     `json:"outcome"`
	Reason     string            `json:"reason"`
	RequestID  string            `json:"request_id"`
	Verify     string            `json:"verify"`
	Tries      int               `json:"verify_tries"`
}

func sendOf(s idempotency.Send) *Send {
	if s.State == "" {
		return nil
	}
	return &Send{
		Generation: s.Generation, State: s.State, AttemptID: s.AttemptID, SentAt: stamp(s.SentAt), EndedAt: stamp(s.EndedAt),
		Outcome: s.Outcome, Reason: s.Reason, RequestID: s.RequestID, Verify: string(s.Verify), Tries: s.Tries,
	}
}

// UploadsReport is a list of uploads.
type UploadsReport struct {
	Uploads []Upload `json:"uploads"`
	// Others counts uploads in every state by state, if Uploads is empty.
	Others map[idempotency.State]int64 `json:"others"`
}

// List returns uploads in the order of their keys, at most f.Limit. For the next page set f.After to the last key.
func (u *Uploads) List(ctx context.Context, f idempotency.Filter) (UploadsReport, error) {
	r := UploadsReport{Uploads: []Upload{}}
	for _, state := range f.States {
		if err := among("state", state, idempotency.States); err != nil {
			return r, err
		}
	}
	if f.Limit < 1 {
		return r, invalid("limit %d: must be 1 or more", f.Limit)
	}
	found, err := u.Ledger.List(ctx, f)
	if err != nil {
		return r, err
	}
	r.Uploads = mapped(found, uploadOf)
	if len(found) == 0 {
		f.States = nil
		r.Others, err = u.Ledger.Count(ctx, f)
	}
	return r, err
}

func uploadOf(e idempotency.Entry) Upload {
	return Upload{
		e.Key, e.Source, e.AudioID, e.SHA256, e.Generation, e.State, stamp(e.Since), e.Owner.Key != "" && e.Owner.Key != e.Key, sendOf(e.Send),
	}
}

// UploadDetail is everything that the ledger stores about one upload.
type UploadDetail struct {
	Upload
	Owner      string     `json:"owner"` // of the slot
	OwnerSince *time.Time `json:"owner_since"`
	Sends      []*Send    `json:"sends"` // one per generation that was sent, oldest first
	Trail      []Audit    `json:"trail"` // decisions and late reports, oldest first
}

// Audit is a decision about an upload, or a report that came too late to count.
type Audit struct {
	At         *time.Time `json:"at"`
	Who        string     `json:"who"`
	What       string     `json:"what"`
	Why        string     `json:"why"`
	Generation int64      `json:"generation"`
}

// Show returns one upload by its key, which may be shortened. It fails with a *NotFoundError if the ledger does not
// have it.
func (u *Uploads) Show(ctx context.Context, key string) (UploadDetail, error) {
	key, err := u.fullKey(ctx, key)
	if err != nil {
		return UploadDetail{}, err
	}
	d, err := u.Ledger.Show(ctx, key)
	if errors.Is(err, idempotency.ErrUnknownKey) {
		return UploadDetail{}, unknown("upload %s: it is not in the ledger", ShownName(key))
	}
	if err != nil {
		return UploadDetail{}, err
	}
	return UploadDetail{
		Upload: uploadOf(d.Status.Entry), Owner: d.Status.Owner.Key, OwnerSince: stamp(d.Status.Owner.Since), Sends: mapped(d.Sends, sendOf),
		Trail: mapped(d.Trail, func(a idempotency.Audit) Audit {
			return Audit{stamp(a.At), text.Printable(a.Who), a.What, text.Printable(a.Why), a.Generation}
		}),
	}, nil
}

// AdoptReport is what adopting a ledger changed.
type AdoptReport struct {
	Adopted    bool             `json:"adopted"` // false: Redis remembers an entry of this ledger
	Mark       idempotency.Mark `json:"mark"`    // the ledger's latest
	Remembered idempotency.Mark `json:"remembered"`
}

// Adopt accepts a restored or new ledger in place of the one that Redis remembers, so that uploads continue. The mark
// in Redis stays until the next upload writes a newer one.
func (u *Uploads) Adopt(ctx context.Context, by, why string) (AdoptReport, error) {
	var r AdoptReport
	if strings.TrimSpace(why) == "" {
		return r, invalid("a reason (why) is required: it is stored with the decision")
	}
	var err error
	if r.Remembered, err = redismark.Read(ctx, u.Redis); err != nil {
		return r, err
	}
	err = u.Ledger.Check(ctx, r.Remembered)
	_, r.Adopted = errors.AsType[*idempotency.BehindError](err)
	if err != nil && !r.Adopted {
		return r, err
	}
	r.Mark, err = u.Ledger.Adopt(ctx, r.Remembered, idempotency.Action{By: by, Why: why, At: u.Now()})
	return r, err
}
