package audd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// errSealed is returned to the transport for reads after the end of the call.
var errSealed = errors.New("the call is over")

// requestBody is the body that net/http reads. It runs the hook at the first read
// and records whether any byte was returned. After seal it returns no bytes, so
// a call reported as unsent stays unsent.
type requestBody struct {
	ctx      context.Context //nolint:containedctx // of the call; io.Reader has no context
	before   BeforeBody
	form     form
	starting func() // called once, before the first byte is returned

	mu       sync.Mutex
	sealed   bool
	entered  bool          // the first read has begun
	hookDone chan struct{} // closed when the hook returns; nil before it starts
	started  bool          // bytes were returned
	hookErr  error
	localErr error
	close    sync.Once
}

// Read implements io.Reader for net/http's write loop.
func (b *requestBody) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := b.enter(); err != nil {
		return 0, err
	}
	n, err := b.readSource(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.sealed:
		return 0, errSealed
	case err == nil || err == io.EOF: //nolint:errorlint // io.Reader's contract is the bare value
		return n, err
	case b.localErr == nil:
		b.localErr = fmt.Errorf("read the audio: %w", err)
	}
	return 0, err
}

// enter runs the hook before the first byte and fails once the body is sealed.
func (b *requestBody) enter() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sealed {
		return errSealed
	}
	if !b.entered {
		b.entered = true
		b.hookDone = make(chan struct{})
		b.mu.Unlock()
		err := runHook(b.ctx, b.before)
		b.mu.Lock()
		b.hookErr = err
		close(b.hookDone)
		if err != nil {
			b.sealed = true
			return err
		}
		// The hook may have exceeded the deadline; nothing is sent after it.
		if err := b.ctx.Err(); err != nil {
			b.sealed = true
			return err
		}
		if b.sealed {
			return errSealed
		}
	}
	if !b.started {
		b.started = true
		b.starting()
	}
	return nil
}

// runHook runs the hook, if any.
func runHook(ctx context.Context, before BeforeBody) (err error) {
	if before == nil {
		return nil
	}
	defer recoverTo(&err, "BeforeBody")
	return before(ctx)
}

// readSource reads the form.
func (b *requestBody) readSource(p []byte) (n int, err error) {
	defer recoverTo(&err, "the audio's reader")
	return b.form.body.Read(p)
}

// recoverTo turns a panic of the caller's code into an error. On the transport's
// goroutine nothing else recovers it, and the process would exit.
func recoverTo(err *error, what string) {
	switch r := recover().(type) {
	case nil:
	case error:
		*err = fmt.Errorf("%s panicked: %w", what, r)
	default:
		*err = fmt.Errorf("%s panicked: %v", what, r)
	}
}

// Close implements io.Closer; net/http may call it at any time.
func (b *requestBody) Close() error {
	var err error
	b.close.Do(func() {
		if b.form.source != nil {
			err = b.form.source.Close()
		}
	})
	return err
}

// seal ends the body: it waits for a running hook, lets later reads fail and
// closes the source.
func (b *requestBody) seal() (started bool, hookErr, localErr error) {
	b.mu.Lock()
	b.sealed = true
	hook := b.hookDone
	b.mu.Unlock()
	if hook != nil {
		<-hook
	}
	_ = b.Close() // the body is not read any more; an error changes nothing
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.started, b.hookErr, b.localErr
}
