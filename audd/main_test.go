package audd_test

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"reprise/audd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "tok-5ecret-0123456789abcdef"

// newClient returns a client whose endpoints start with base.
func newClient(t *testing.T, base string, change ...func(*audd.Config)) *audd.Client {
	t.Helper()
	cfg := audd.DefaultConfig()
	cfg.Token = func() string { return token }
	cfg.BaseURL, cfg.EnterpriseURL = base, base+"/enterprise/"
	for _, f := range change {
		f(&cfg)
	}
	c, err := audd.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func withTransport(rt http.RoundTripper) func(*audd.Config) {
	return func(c *audd.Config) { c.Transport = rt }
}

func withTimeout(d time.Duration) func(*audd.Config) {
	return func(c *audd.Config) {
		c.Timeouts = audd.Timeouts{Recognize: d, Enterprise: d, Upload: d, Check: d}
	}
}

// withGrowingTimeout repeats a call with longer timeouts until call returns true, which means that the deadline
// passed at the intended step.
func withGrowingTimeout(t *testing.T, call func(timeout time.Duration) bool) {
	t.Helper()
	for d := 50 * time.Millisecond; d < time.Minute; d *= 4 {
		if call(d) {
			return
		}
	}
	require.Fail(t, "the deadline always passed too early")
}

// source is an audio reader that records whether it was closed.
type source struct {
	io.Reader

	closed atomic.Bool
}

func (s *source) Close() error {
	s.closed.Store(true)
	return nil
}

func audio(data []byte) audd.Audio {
	return audd.Audio{Name: "clip.mp3", Open: func() (io.ReadCloser, int64, error) {
		return &source{Reader: bytes.NewReader(data)}, int64(len(data)), nil
	}}
}

// part is one part of a multipart body.
type part struct {
	name, file, value string
}

// received is one request as the server read it.
type received struct {
	proto, path, query string
	header             http.Header
	length             int64
	parts              []part
}

func (r received) values() map[string]string {
	out := map[string]string{}
	for _, p := range r.parts {
		out[p.name] = p.value
	}
	return out
}

// server records all requests and answers each with the same response.
type server struct {
	*httptest.Server

	mu       sync.Mutex
	requests []received
}

func (s *server) seen() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func (s *server) record(r *http.Request) {
	got := received{proto: r.Proto, path: r.URL.Path, query: r.URL.RawQuery, header: r.Header, length: r.ContentLength}
	mr, err := r.MultipartReader()
	for err == nil {
		var p *multipart.Part
		if p, err = mr.NextRawPart(); err == nil {
			value, _ := io.ReadAll(p)
			got.parts = append(got.parts, part{p.FormName(), p.FileName(), string(value)})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, got)
}

func serve(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.record(r)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "req-1")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func fixture(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(raw)
}

// failed asserts that err is an *audd.Error and returns it.
func failed(t *testing.T, err error) *audd.Error {
	t.Helper()
	var e *audd.Error
	require.ErrorAs(t, err, &e)
	require.Same(t, e, err, "errors are *audd.Error, not wrapped")
	return e
}

// rawServer accepts and counts TCP connections. handle owns each connection.
type rawServer struct {
	net.Listener

	URL      string
	accepted atomic.Int64
}

func rawListen(t *testing.T, wrap func(net.Listener) net.Listener, handle func(n int, c net.Conn)) *rawServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &rawServer{Listener: l, URL: "http://" + l.Addr().String()}
	if wrap != nil {
		s.Listener = wrap(l)
		s.URL = "https://" + l.Addr().String()
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := s.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue
			}
			n := int(s.accepted.Add(1))
			wg.Go(func() {
				defer func() { _ = c.Close() }()
				handle(n, c)
			})
		}
	})
	t.Cleanup(func() {
		_ = s.Close()
		wg.Wait()
	})
	return s
}

func plain(t *testing.T, handle func(n int, c net.Conn)) *rawServer {
	t.Helper()
	return rawListen(t, nil, handle)
}

// reset closes the connection with RST.
func reset(c net.Conn) {
	if below, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = below.NetConn()
	}
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

func httpAnswer(body string) string {
	return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

func proxyTo(raw string) func(*http.Request) (*url.URL, error) {
	return func(*http.Request) (*url.URL, error) { return url.Parse(raw) }
}
