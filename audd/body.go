package audd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// errSealed is what a late read of the transport gets once the call is over.
var errSealed = errors.New("the call is over")

// requestBody is the body net/http reads. It runs the hook at the first read
// and knows whether any byte was handed out. After seal nothing is handed out
// any more, so what the call reports as unsent stays unsent.
type requestBody struct {
	ctx      context.Context //nolint:containedctx // of the call; the transport's reads bring none
	before   BeforeBody
	form     form
	starting func() // called once, right before the first byte is handed out

	mu       sync.Mutex
	sealed   bool
	entered  bool          // the first read came
	hookDone chan struct{} // closed when the hook has returned; nil while it has not begun
	started  bool          // bytes were handed out
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
	if err == nil || err == io.EOF { //nolint:errorlint // io.Reader's contract is the bare value
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.sealed {
			return 0, errSealed
		}
		return n, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.localErr == nil && !b.sealed {
		b.localErr = fmt.Errorf("read the audio: %w", err)
	}
	return 0, err
}

// enter runs the hook before the first byte and refuses once the body is sealed.
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
		// The hook may have taken long: nothing leaves after the deadline.
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

// runHook turns a panic into an error: on the transport's goroutine nobody
// could recover it and the process would die.
func runHook(ctx context.Context, before BeforeBody) (err error) {
	if before == nil {
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("BeforeBody panicked: %w", panicError(r))
		}
	}()
	return before(ctx)
}

// readSource reads the form; a panic of the caller's reader becomes an error, as in runHook.
func (b *requestBody) readSource(p []byte) (n int, err error) {
	defer func() {
		if r := recover(); r != nil {
			n, err = 0, fmt.Errorf("the audio's reader panicked: %w", panicError(r))
		}
	}()
	return b.form.body.Read(p)
}

func panicError(r any) error {
	if err, ok := r.(error); ok {
		return err
	}
	return fmt.Errorf("%v", r)
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

// seal ends the body: it waits for a running hook, hands out nothing from now
// on and closes the source.
func (b *requestBody) seal() (started bool, hookErr, localErr error) {
	b.mu.Lock()
	b.sealed = true
	hook := b.hookDone
	b.mu.Unlock()
	if hook != nil {
		<-hook
	}
	_ = b.Close() // what could be read was read; a failing close changes nothing
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.started, b.hookErr, b.localErr
}
