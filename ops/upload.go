package ops

import (
	"context"
	"errors"
	"strings"
	"time"

	"reprise/idempotency"
	"reprise/idempotency/redismark"
	"reprise/internal/text"
)

// Uploads reports on the upload ledger, resolves uncertain uploads and adopts a restored ledger.
type Uploads struct{ *base }

// Upload is an upload in its current generation. Send is null if nothing was sent in this generation.
type Upload struct {
	idempotency.Entry
	Replaced bool `json:"replaced"` // the slot belongs to another key now
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
	return Upload{e, e.Owner.Key != "" && e.Owner.Key != e.Key}
}

// UploadDetail is everything that the ledger stores about one upload.
type UploadDetail struct {
	Upload
	Owner      string              `json:"owner"` // of the slot
	OwnerSince *time.Time          `json:"owner_since"`
	Sends      []idempotency.Send  `json:"sends"` // one per generation that was sent, oldest first
	Trail      []idempotency.Audit `json:"trail"` // decisions and late reports, oldest first
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
	out := UploadDetail{
		Upload: uploadOf(d.Status.Entry), Owner: d.Status.Owner.Key, OwnerSince: stamp(d.Status.Owner.Since),
		Sends: append([]idempotency.Send{}, d.Sends...), Trail: append([]idempotency.Audit{}, d.Trail...),
	}
	for i, a := range out.Trail {
		out.Trail[i].Who, out.Trail[i].Why = text.Printable(a.Who), text.Printable(a.Why)
	}
	return out, nil
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
