package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"reprise/audd"
	"reprise/retrypolicy"
	"reprise/tasks"
)

// reply is what one AudD call came to.
type reply struct {
	match   bool
	err     error
	meta    audd.Meta
	raw     json.RawMessage
	started time.Time
	took    time.Duration
}

func (r reply) attempt(d *delivery) retrypolicy.CallResult {
	return retrypolicy.CallResult{
		Path: d.payload.Path, Match: r.match, Err: r.err,
		InputKind: d.payload.Input.Kind, URLSigned: d.payload.Input.ExpiresAt != 0,
	}
}

// requestID is AudD's id of the call, for its support.
func (r reply) requestID() string {
	if failed, ok := errors.AsType[*audd.Error](r.err); ok {
		return failed.RequestID
	}
	return r.meta.RequestID
}

// call makes exactly one HTTP request to the permit's source. Once it is on
// its way only its own timeout or the worker's hard stop ends it: asynq cancels
// a delivery when its lease is lost or a person cancels the task, and an answer
// that is paid for would be lost. A redelivery finds the key in flight or
// settled meanwhile.
func (w *Worker) call(ctx context.Context, d *delivery) reply {
	done := w.waits.begin(d, nil)
	defer done()
	delivered, ctx := ctx, w.halted
	client := w.clients[d.permit.Source]
	in := &input{spec: d.payload.Input}
	defer in.close()
	audio := audd.Audio{URL: d.payload.Input.URL, Name: in.name()}
	if d.payload.Input.Kind != tasks.URLInput {
		audio.Open = in.open
	}
	before := func(ctx context.Context) error {
		if err := delivered.Err(); err != nil {
			return fmt.Errorf("%w: %w", retrypolicy.ErrLeaseLost, err)
		}
		return w.beforeBody(ctx, d)
	}
	r := reply{started: w.now()}
	a := d.payload.Params
	switch d.payload.Path {
	case tasks.Recognize:
		var got audd.Recognition
		got, r.err = client.Recognize(ctx, audd.RecognizeRequest{Audio: audio, Return: a.Return, Market: a.Market, BeforeBody: before})
		r.match, r.meta, r.raw = got.Song != nil, got.Meta, got.Raw
	case tasks.Enterprise:
		var got audd.EnterpriseResult
		got, r.err = client.Enterprise(ctx, audd.EnterpriseRequest{
			Audio: audio, Skip: a.Skip, Every: a.Every, Limit: a.Limit, SkipFirstSeconds: a.SkipFirstSeconds,
			UseTimecode: a.UseTimecode, AccurateOffsets: a.AccurateOffsets, BeforeBody: before,
		})
		r.match, r.meta, r.raw = hasSong(got), got.Meta, got.Raw
	case tasks.Upload:
		var got audd.Uploaded
		got, r.err = client.Upload(ctx, audd.UploadRequest{Audio: audio, AudioID: *a.AudioID, BeforeBody: before})
		r.match, r.meta = true, got.Meta
	}
	r.took = w.now().Sub(r.started)
	return r
}

// beforeBody runs once dial and TLS are done and before any body byte leaves:
// the last moment at which a call costs nothing. An upload takes its latch
// here; the permit is asked last, because the latch may have taken a while.
func (w *Worker) beforeBody(ctx context.Context, d *delivery) error {
	if d.payload.Path == tasks.Upload {
		if err := w.latch(ctx, d); err != nil {
			return err
		}
	}
	if err := d.permit.Valid(); err != nil {
		return fmt.Errorf("%w: %w", retrypolicy.ErrLeaseLost, err)
	}
	return nil
}

func hasSong(e audd.EnterpriseResult) bool {
	for _, c := range e.Chunks {
		if len(c.Songs) > 0 {
			return true
		}
	}
	return false
}

// input opens the audio of a task and makes sure that it is still the audio
// that was enqueued: size and SHA-256 are checked on the open file before a
// byte is sent, so that nothing is paid for the wrong content.
type input struct {
	spec tasks.Input
	file *os.File
}

func (in *input) name() string {
	if in.spec.Kind == tasks.URLInput {
		return ""
	}
	return filepath.Base(in.spec.Path)
}

func (in *input) open() (io.ReadCloser, int64, error) {
	if in.file == nil {
		f, err := os.Open(in.spec.Path)
		if err != nil {
			return nil, 0, fmt.Errorf("open the audio: %w", err)
		}
		in.file = f
		if err := in.verify(); err != nil {
			return nil, 0, err
		}
	}
	return io.NopCloser(io.NewSectionReader(in.file, 0, in.spec.Size)), in.spec.Size, nil
}

func (in *input) verify() error {
	info, err := in.file.Stat()
	if err != nil {
		return fmt.Errorf("look at the audio: %w", err)
	}
	if info.Size() != in.spec.Size {
		return fmt.Errorf("the file has %d bytes, enqueued were %d: %w", info.Size(), in.spec.Size, retrypolicy.ErrInputChanged)
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(in.file, 0, in.spec.Size)); err != nil {
		return fmt.Errorf("read the audio: %w", err)
	}
	if hex.EncodeToString(h.Sum(nil)) != in.spec.SHA256 {
		return fmt.Errorf("the file's content is not what was enqueued: %w", retrypolicy.ErrInputChanged)
	}
	return nil
}

func (in *input) close() {
	if in.file != nil {
		_ = in.file.Close() // read only: nothing to lose
	}
}
