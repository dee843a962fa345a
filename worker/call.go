package worker

import (
	"context"
	"fmt"
	"time"

	"reprise/audd"
	"reprise/retrypolicy"
	"reprise/tasks"
)

// caller makes the calls to AudD. Safe for concurrent use.
type caller struct {
	clients map[string]*audd.Client // by source
	uploads *uploads
	waits   *waits
	stopped context.Context //nolint:containedctx // done: running calls are cancelled
}

// call makes one HTTP request to the permit's source and classifies the response. Once the request is on its way,
// only its timeout or the end of the worker cancels it. asynq cancels a delivery when its lease is lost or an
// operator cancels the task, but the response is paid for. The next delivery finds the key in flight or settled.
func (c *caller) call(ctx context.Context, d *delivery) *ending {
	defer c.waits.begin(d, causeCall)()
	in := &input{spec: d.payload.Input}
	if d.payload.Params.Verifies != nil {
		in.limit = verifyBytes
	}
	defer in.close()
	// beforeBody runs after dial and TLS and before the first byte of the body: a call that it refuses is not billed.
	// It checks the permit last, because the latch takes time.
	beforeBody := func(latchCtx context.Context) error {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%w: %w", retrypolicy.ErrLeaseLost, err)
		}
		if d.isUpload() {
			if err := c.uploads.latch(latchCtx, d); err != nil {
				return err
			}
		}
		if err := d.permit.Valid(); err != nil {
			return fmt.Errorf("%w: %w", retrypolicy.ErrLeaseLost, err)
		}
		return nil
	}
	r, match := c.request(d, in.audio(), beforeBody)
	class := retrypolicy.Classify(retrypolicy.CallResult{
		Path: d.payload.Path, Match: match, Err: r.err,
		InputKind: d.payload.Input.Kind, URLSigned: d.payload.Input.ExpiresAt != 0,
	})
	if r.err == nil {
		class.HTTPStatus = r.meta.HTTPStatus
	}
	return &ending{class: class, reply: r}
}

// request sends the request of the task's path. match reports whether a song was found, or an upload was
// accepted.
func (c *caller) request(d *delivery, audio audd.Audio, beforeBody func(context.Context) error) (r *reply, match bool) {
	client, a := c.clients[d.permit.Source], d.payload.Params
	r = &reply{started: time.Now()}
	switch d.payload.Path {
	case tasks.Recognize:
		var got audd.Recognition
		got, r.err = client.Recognize(c.stopped, audd.RecognizeRequest{Audio: audio, Return: a.Return, Market: a.Market, BeforeBody: beforeBody})
		match, r.meta, r.raw = got.Song != nil, got.Meta, got.Raw
		if match {
			r.audioID = got.Song.AudioID
		}
	case tasks.Enterprise:
		var got audd.EnterpriseResult
		got, r.err = client.Enterprise(c.stopped, audd.EnterpriseRequest{
			Audio: audio, Skip: a.Skip, Every: a.Every, Limit: a.Limit, SkipFirstSeconds: a.SkipFirstSeconds,
			UseTimecode: a.UseTimecode, AccurateOffsets: a.AccurateOffsets, BeforeBody: beforeBody,
		})
		match, r.meta, r.raw = hasSong(got), got.Meta, got.Raw
	case tasks.Upload:
		match = true
		r.meta, r.err = client.Upload(c.stopped, audd.UploadRequest{Audio: audio, AudioID: *a.AudioID, BeforeBody: beforeBody})
	}
	r.took = time.Since(r.started)
	return r, match
}

func hasSong(e audd.EnterpriseResult) bool {
	for _, c := range e.Chunks {
		if len(c.Songs) > 0 {
			return true
		}
	}
	return false
}

// otherSource reports whether a source is left that did not refuse the account in this delivery. A pinned task
// has only its own.
func (c *caller) otherSource(d *delivery) bool {
	return d.payload.Params.Source == "" && len(d.refusedBy)+1 < len(c.clients)
}
