package audd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// errSealed is returned by reads after the call has ended.
var errSealed = errors.New("the call has ended")

// requestBody is the body that net/http reads. The first read runs the hook. requestBody records whether any byte was
// returned. After seal no read returns bytes, so a call that was reported as unsent stays unsent.
type requestBody struct {
	ctx      context.Context //nolint:containedctx // the call's context; io.Reader takes none
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

// Read returns the next bytes of the form. net/http's write loop calls it.
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

// enter runs the hook before the first byte. It returns an error if the body is sealed.
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

// guarded runs the caller's code and turns a panic into an error. The transport's goroutine has no other recover, so
// a panic there would end the process.
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

// Close closes the audio. net/http may call Close at any time.
func (b *requestBody) Close() (err error) {
	b.close.Do(func() {
		if b.form.source != nil {
			err = b.form.source.Close()
		}
	})
	return err
}

// seal waits for a running hook, closes the audio and makes later reads fail.
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
