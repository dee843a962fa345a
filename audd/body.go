package audd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// errSealed is the error of reads after the end of the call.
var errSealed = errors.New("the call is over")

// requestBody is the body that net/http reads. Its first read runs the hook. It records whether any byte was
// returned. After seal it returns no bytes, so a call that was reported as unsent stays unsent.
type requestBody struct {
	ctx      context.Context //nolint:containedctx // of the call; io.Reader has no context
	before   BeforeBody      // may be nil
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

// Read returns bytes of the form to net/http's write loop.
func (b *requestBody) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := b.enter(); err != nil {
		return 0, err
	}
	err = guarded("the audio's reader", func() (err error) {
		n, err = b.form.body.Read(p)
		return err
	})
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

// enter runs the hook before the first byte. It fails when the body is sealed.
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
		err := guarded("BeforeBody", func() error {
			if b.before == nil {
				return nil
			}
			return b.before(b.ctx)
		})
		b.mu.Lock()
		b.hookErr = err
		close(b.hookDone)
		if err == nil {
			err = b.ctx.Err() // the hook may have exceeded the deadline
		}
		if err != nil {
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

// guarded runs the caller's code and turns a panic into an error. Nothing else recovers on the transport's goroutine,
// where a panic ends the process.
func guarded(what string, run func() error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error:
			err = fmt.Errorf("%s panicked: %w", what, r)
		default:
			err = fmt.Errorf("%s panicked: %v", what, r)
		}
	}()
	return run()
}

// Close closes the source. net/http may call it at any time.
func (b *requestBody) Close() (err error) {
	b.close.Do(func() {
		if b.form.source != nil {
			err = b.form.source.Close()
		}
	})
	return err
}

// seal ends the body: it waits for a running hook, makes later reads fail and closes the source.
func (b *requestBody) seal() (started bool, hookErr, localErr error) {
	b.mu.Lock()
	b.sealed = true
	hook := b.hookDone
	b.mu.Unlock()
	if hook != nil {
		<-hook
	}
	_ = b.Close() // nothing is read after this, so an error has no effect
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.started, b.hookErr, b.localErr
}
