package audd_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/audd"
)

// drain discards all input until the client closes the connection.
func drain(_ int, c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// readRequest reads one complete request from the connection.
func readRequest(c net.Conn) (*bufio.Reader, error) {
	return readNext(bufio.NewReader(c))
}

func readNext(r *bufio.Reader) (*bufio.Reader, error) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return r, fmt.Errorf("read the head: %w", err)
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return r, fmt.Errorf("read the body: %w", err)
	}
	return r, nil
}

// afterRequest calls handle after a complete request.
func afterRequest(handle func(c net.Conn)) func(int, net.Conn) {
	return func(_ int, c net.Conn) {
		if _, err := readRequest(c); err == nil {
			handle(c)
		}
	}
}

func write(text string) func(net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, text) }
}

func TestFailuresBeforeTheBodyAreUnsent(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	refused := closed.Addr().String()

	tlsServer := httptest.NewUnstartedServer(answer(200, noMatch))
	tlsServer.Config.ErrorLog = log.New(io.Discard, "", 0) // hides the error about the rejected certificate
	tlsServer.StartTLS()
	t.Cleanup(tlsServer.Close)
	inHandshake := plain(t, func(_ int, c net.Conn) { reset(c) })
	silent := plain(t, drain)
	noTunnel := plain(t, func(_ int, c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			write("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")(c)
		}
	})

	noDNS := &http.Transport{DialContext: (&net.Dialer{Resolver: &net.Resolver{
		PreferGo: true,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("no name server")
		},
	}}).DialContext}
	for name, c := range map[string]struct {
		url       string
		transport http.RoundTripper
		timeout   time.Duration
	}{
		"name not found":        {"http://api.audd.test", noDNS, time.Minute},
		"dial refused":          {"http://" + refused, nil, time.Minute},
		"certificate unknown":   {tlsServer.URL, nil, time.Minute},
		"reset in TLS":          {"https://" + inHandshake.Addr().String(), nil, time.Minute},
		"TLS never responds":    {"https://" + silent.Addr().String(), nil, 100 * time.Millisecond},
		"plain HTTP behind TLS": {"https://" + noTunnel.Addr().String(), nil, time.Minute},
		"proxy refused":         {"http://api.audd.test", &http.Transport{Proxy: proxyTo("http://" + refused)}, time.Minute},
		"proxy denies":          {"https://api.audd.test", &http.Transport{Proxy: proxyTo(noTunnel.URL)}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := []func(*audd.Config){withTimeout(c.timeout)}
			if c.transport != nil {
				change = append(change, withTransport(c.transport))
			}
			var hooks atomic.Int64
			_, err := newClient(t, c.url, change...).Upload(t.Context(), audd.UploadRequest{
				Audio:      audio(make([]byte, 1<<20)),
				BeforeBody: func(context.Context) error { hooks.Add(1); return nil },
			})
			e := failed(t, err)
			require.Equal(t, audd.KindTransport, e.Kind, "%v", err)
			require.Equal(t, audd.PhaseUnsent, e.Phase, "%v", err)
			require.Zero(t, hooks.Load())
			require.Positive(t, e.Latency)
		})
	}
}

func TestFailuresAfterTheFirstBodyByteAreSent(t *testing.T) {
	t.Parallel()
	const cutJSON = `{"status":"success","result":{"artist":"A`
	for name, c := range map[string]struct {
		handle func(int, net.Conn)
		kind   audd.Kind
	}{
		"reset within the body": {func(_ int, c net.Conn) {
			_, _ = io.CopyN(io.Discard, c, 64<<10)
			reset(c)
		}, audd.KindTransport},
		"reset after the body":     {afterRequest(reset), audd.KindTransport},
		"close after the body":     {afterRequest(func(net.Conn) {}), audd.KindTransport},
		"response cut in its head": {afterRequest(write("HTTP/1.1 200 OK\r\nContent-Le")), audd.KindTransport},
		"response is not HTTP":     {afterRequest(write("220 mail ready\r\n")), audd.KindTransport},
		"body cut by length":       {afterRequest(write("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + cutJSON)), audd.KindBody},
		"body cut in chunks":       {afterRequest(write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n29\r\n" + cutJSON + "\r\n")), audd.KindBody},
		"body cut without length":  {afterRequest(write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + cutJSON)), audd.KindBody},
		"gzip cut":                 {afterRequest(write("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 12\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03ab")), audd.KindBody},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := plain(t, c.handle)
			var hooks atomic.Int64
			_, err := newClient(t, raw.URL).Upload(t.Context(), audd.UploadRequest{
				Audio:      audio(make([]byte, 4<<20)),
				BeforeBody: func(context.Context) error { hooks.Add(1); return nil },
			})
			e := failed(t, err)
			require.Equal(t, c.kind, e.Kind, "%v", err)
			require.Equal(t, audd.PhaseSent, e.Phase, "%v", err)
			require.EqualValues(t, 1, hooks.Load())
			require.EqualValues(t, 1, raw.accepted.Load(), "one connection, one request")
			require.False(t, e.JSON)
		})
	}
}

func TestDeadlineAfterTheBodyIsSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		kind   audd.Kind
	}{
		"no response in time":       {"", audd.KindTransport},
		"body stops until deadline": {"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + `{"status":`, audd.KindBody},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withGrowingTimeout(t, func(timeout time.Duration) bool {
				raw := plain(t, afterRequest(func(conn net.Conn) { write(c.answer)(conn); drain(0, conn) }))
				_, err := newClient(t, raw.URL, withTimeout(timeout)).Upload(t.Context(), audd.UploadRequest{Audio: audio(make([]byte, 4<<20))})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				e := failed(t, err)
				require.LessOrEqual(t, raw.accepted.Load(), int64(1), "one connection, one request")
				require.False(t, e.JSON)
				return e.Kind == c.kind && e.Phase == audd.PhaseSent
			})
		})
	}
}

// A reset right after accept may come before or after the first body byte. If the server has read a body byte, the
// call must not be unsent.
func TestResetConnectionIsSentIfTheServerReadABodyByte(t *testing.T) {
	t.Parallel()
	for range 20 {
		var read atomic.Int64
		raw := plain(t, func(_ int, c net.Conn) {
			_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
			if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				n, _ := req.Body.Read(make([]byte, 1))
				read.Add(int64(n))
			}
			reset(c)
		})
		_, err := newClient(t, raw.URL).Recognize(t.Context(), audd.RecognizeRequest{Audio: audio(make([]byte, 1<<20))})
		e := failed(t, err)
		if e.Phase == audd.PhaseUnsent {
			require.Zero(t, read.Load())
		}
		require.NotEqual(t, audd.PhaseAnswered, e.Phase)
		require.EqualValues(t, 1, raw.accepted.Load())
	}
}

// A server that refuses a body responds, stops reading and closes the connection. The close resets the connection
// while the client is still writing.
func TestEarly413IsReturnedEvenIfTheConnectionIsReset(t *testing.T) {
	t.Parallel()
	cert := httptest.NewUnstartedServer(nil)
	cert.StartTLS()
	t.Cleanup(cert.Close)
	tlsConfig := &tls.Config{Certificates: cert.TLS.Certificates}
	refuse := func(_ int, c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		write("HTTP/1.1 413 Content Too Large\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: 6\r\n\r\n<html>")(c)
	}
	for name, raw := range map[string]*rawServer{
		"plain": plain(t, refuse),
		"TLS":   rawListen(t, func(l net.Listener) net.Listener { return tls.NewListener(l, tlsConfig) }, refuse),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, raw.URL, func(cfg *audd.Config) { cfg.Transport = cert.Client().Transport })
			const calls = 30
			for range calls {
				_, err := c.Recognize(t.Context(), audd.RecognizeRequest{Audio: audio(make([]byte, 4<<20))})
				e := failed(t, err)
				require.Equal(t, audd.KindHTTP, e.Kind, "%v", err)
				require.Equal(t, 413, e.HTTPStatus)
				require.Equal(t, audd.PhaseAnswered, e.Phase)
			}
			require.EqualValues(t, calls, raw.accepted.Load())
		})
	}
}
