package audd_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/audd"
	"reprise/internal/proctest"
)

// countBodies returns a server that never responds and a channel with the number of body bytes of each request.
func countBodies(t *testing.T) (*rawServer, <-chan int64) {
	t.Helper()
	bodies := make(chan int64, 10)
	return plain(t, func(_ int, c net.Conn) {
		var n int64
		if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			n, _ = io.Copy(io.Discard, req.Body)
		}
		bodies <- n
	}), bodies
}

var errLatch = errors.New("another attempt holds the latch")

func TestHookErrorLeavesTheCallUnsent(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]audd.BeforeBody{
		"error": func(context.Context) error { return errLatch },
		"panic": func(context.Context) error { panic(errLatch) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, bodies := countBodies(t)
			in, src := opened(strings.NewReader("abc"), 3)
			_, err := newClient(t, raw.URL).Upload(t.Context(), audd.UploadRequest{Audio: in, BeforeBody: hook})
			e := failed(t, err)
			require.Equal(t, audd.KindHook, e.Kind)
			require.Equal(t, audd.PhaseUnsent, e.Phase)
			require.ErrorIs(t, err, errLatch)
			require.True(t, src.closed.Load())
			require.Zero(t, <-bodies)
		})
	}
}

func TestHookRunsOncePerCallBeforeTheRequestIsSent(t *testing.T) {
	t.Parallel()
	s := serve(t, answer(200, noMatch))
	c := newClient(t, s.URL)
	var hooks atomic.Int64
	for n := range 3 {
		_, err := c.Recognize(t.Context(), audd.RecognizeRequest{
			Audio: audio(make([]byte, 200_000)),
			BeforeBody: func(ctx context.Context) error {
				require.Len(t, s.seen(), n, "the hook runs before the request is sent")
				_, ok := ctx.Deadline()
				require.True(t, ok, "the hook gets the call's deadline")
				hooks.Add(1)
				return nil
			},
		})
		require.NoError(t, err)
	}
	require.EqualValues(t, 3, hooks.Load())
}

func TestNothingIsSentIfTheDeadlinePassesInTheHook(t *testing.T) {
	t.Parallel()
	withGrowingTimeout(t, func(timeout time.Duration) bool {
		raw, bodies := countBodies(t)
		var begun, returned atomic.Bool
		_, err := newClient(t, raw.URL, withTimeout(timeout)).Upload(t.Context(), audd.UploadRequest{
			Audio: audio([]byte("abc")),
			BeforeBody: func(ctx context.Context) error {
				begun.Store(true)
				<-ctx.Done()
				proctest.Pass(50 * time.Millisecond) // a call that did not wait for the hook would have returned by now
				returned.Store(true)
				return nil // the hook latched despite the deadline
			},
		})
		e := failed(t, err)
		require.Equal(t, audd.KindTransport, e.Kind)
		require.Equal(t, audd.PhaseUnsent, e.Phase)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		if !begun.Load() {
			return false
		}
		require.True(t, returned.Load(), "the call returned while its hook was running")
		require.Zero(t, <-bodies)
		return true
	})
}

func TestEarlyResponseWaitsForTheRunningHook(t *testing.T) {
	t.Parallel()
	for _, hookErr := range []error{nil, errLatch} {
		answered, bodies := make(chan struct{}), make(chan int64, 1)
		raw := plain(t, func(_ int, c net.Conn) {
			r := bufio.NewReader(c)
			if _, err := http.ReadRequest(r); err != nil {
				return
			}
			write("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")(c)
			close(answered)
			n, _ := io.Copy(io.Discard, r)
			bodies <- n
		})
		var ended atomic.Bool
		_, err := newClient(t, raw.URL).Upload(t.Context(), audd.UploadRequest{
			Audio: audio([]byte("abc")),
			BeforeBody: func(context.Context) error {
				<-answered
				ended.Store(true)
				return hookErr
			},
		})
		require.True(t, ended.Load())
		e := failed(t, err)
		if hookErr != nil {
			require.Equal(t, audd.KindHook, e.Kind)
			require.Equal(t, audd.PhaseUnsent, e.Phase)
			require.Zero(t, <-bodies)
		} else {
			require.Equal(t, 503, e.HTTPStatus)
			require.Equal(t, audd.PhaseAnswered, e.Phase)
		}
	}
}

// keepAlive responds to the first request and then passes the idle connection to next.
func keepAlive(requests *atomic.Int64, next func(c net.Conn)) func(int, net.Conn) {
	return func(_ int, c net.Conn) {
		if _, err := readRequest(c); err != nil {
			return
		}
		requests.Add(1)
		write(httpAnswer(noMatch))(c)
		next(c)
	}
}

func TestClosedKeepAliveConnectionIsUnsentAndNotReplayed(t *testing.T) {
	t.Parallel()
	var requests, hooks atomic.Int64
	hangUp, gone := make(chan struct{}), make(chan struct{})
	raw := plain(t, keepAlive(&requests, func(c net.Conn) {
		<-hangUp
		reset(c)
		close(gone)
	}))
	c := newClient(t, raw.URL)
	_, err := c.Recognize(t.Context(), audd.RecognizeRequest{Audio: audio([]byte("abc"))})
	require.NoError(t, err)
	_, err = c.Upload(t.Context(), audd.UploadRequest{
		Audio: audio(make([]byte, 1<<20)),
		BeforeBody: func(context.Context) error { // resets the connection after the client chose it, before the first byte
			hooks.Add(1)
			close(hangUp)
			<-gone
			return nil
		},
	})
	e := failed(t, err)
	require.Equal(t, audd.PhaseUnsent, e.Phase, "%v", err)
	require.Equal(t, audd.KindTransport, e.Kind)
	require.EqualValues(t, 1, hooks.Load())
	require.EqualValues(t, 1, requests.Load())
	require.EqualValues(t, 1, raw.accepted.Load(), "no second connection was tried")
}

func TestKeepAliveConnectionResetAfterTheFirstBodyByteIsSentAndNotReplayed(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	raw := plain(t, keepAlive(&requests, func(c net.Conn) {
		if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			if n, _ := req.Body.Read(make([]byte, 1)); n == 1 {
				requests.Add(1)
			}
		}
		reset(c)
	}))
	c := newClient(t, raw.URL)
	_, err := c.Recognize(t.Context(), audd.RecognizeRequest{Audio: audio([]byte("abc"))})
	require.NoError(t, err)
	_, err = c.Upload(t.Context(), audd.UploadRequest{Audio: audio(make([]byte, 1<<20))})
	require.Equal(t, audd.PhaseSent, failed(t, err).Phase)
	require.EqualValues(t, 2, requests.Load())
	require.EqualValues(t, 1, raw.accepted.Load())
}

// deadWrites is a connection whose writes fail once armed is set, while reads still block.
type deadWrites struct {
	net.Conn

	armed *atomic.Bool
}

func (d deadWrites) Write(p []byte) (int, error) {
	if d.armed.Load() {
		return 0, syscall.EPIPE
	}
	return d.Conn.Write(p)
}

func TestFailedFirstWriteIsUnsentAndNotRetried(t *testing.T) {
	t.Parallel()
	s := serve(t, answer(200, noMatch))
	var armed atomic.Bool
	var dials, hooks atomic.Int64
	c := newClient(t, s.URL, withTransport(&http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return deadWrites{conn, &armed}, err
		},
	}))
	require.NoError(t, c.CheckToken(t.Context()))
	_, err := c.Upload(t.Context(), audd.UploadRequest{
		Audio:      audio(make([]byte, 1<<20)),
		BeforeBody: func(context.Context) error { hooks.Add(1); armed.Store(true); return nil },
	})
	require.ErrorIs(t, err, syscall.EPIPE)
	require.Equal(t, audd.PhaseUnsent, failed(t, err).Phase)
	require.EqualValues(t, 1, hooks.Load())
	require.EqualValues(t, 1, dials.Load())
	s.Close()                             // waits for the server's handlers
	for _, upload := range s.seen()[1:] { // the head was sent before the hook
		require.Empty(t, upload.parts)
	}
}

// Another RoundTripper does not count written bytes, so a byte that was read from the body counts as sent.
func TestPhaseWithAnotherTransportFollowsBodyReads(t *testing.T) {
	t.Parallel()
	fail := errors.New("connection lost")
	for name, c := range map[string]struct {
		read int
		want audd.Phase
	}{"nothing read": {0, audd.PhaseUnsent}, "one byte read": {1, audd.PhaseSent}} {
		client := newClient(t, "http://api.audd.test", withTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			_, _ = r.Body.Read(make([]byte, c.read))
			return nil, fail
		})))
		_, err := client.Recognize(t.Context(), audd.RecognizeRequest{Audio: audio([]byte("abc"))})
		require.ErrorIs(t, err, fail)
		require.Equal(t, c.want, failed(t, err).Phase, name)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
