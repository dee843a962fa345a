package audd

import (
	"context"
	"strconv"
)

// UploadRequest puts a track into a slot of the account's catalog. A slot in use
// is overwritten, every upload is billed, and AudD cannot list, read or delete
// slots.
type UploadRequest struct {
	Audio      Audio
	AudioID    int64 // the slot, chosen by the caller
	BeforeBody BeforeBody
}

// Upload sends one track. The error is always an *Error; if its phase is sent,
// the track may or may not have arrived.
func (c *Client) Upload(ctx context.Context, in UploadRequest) (Meta, error) {
	a, err := c.do(ctx, call{
		op: "upload", url: c.base + "upload/", timeout: c.cfg.Timeouts.Upload, limit: maxAnswer,
		fields: []field{{"audio_id", strconv.FormatInt(in.AudioID, 10)}}, audio: &in.Audio, before: in.BeforeBody,
	})
	return a.meta, err
}
