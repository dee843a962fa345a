package audd

import (
	"context"
	"strconv"
)

// UploadRequest puts a track into a slot of the account's own catalog. A slot
// in use is overwritten, every upload is billed, and AudD has no way to list,
// read or delete slots.
type UploadRequest struct {
	Audio      Audio
	AudioID    int64 // the slot, chosen by the caller
	BeforeBody BeforeBody
}

// Uploaded is the answer to Upload.
type Uploaded struct {
	Meta
}

// Upload sends one track. The error is always an *Error; with Phase sent
// nobody can know whether the track arrived.
func (c *Client) Upload(ctx context.Context, in UploadRequest) (Uploaded, error) {
	a, err := c.do(ctx, call{
		op: "upload", url: c.base + "upload/", timeout: c.cfg.Timeouts.Upload, limit: maxAnswer,
		fields: []field{{"audio_id", strconv.FormatInt(in.AudioID, 10)}}, audio: &in.Audio, before: in.BeforeBody,
	})
	if err != nil {
		return Uploaded{}, err
	}
	return Uploaded{Meta: a.meta}, nil
}
