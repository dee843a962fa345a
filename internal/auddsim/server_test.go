package auddsim

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"reprise/internal/proctest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stream sends an enterprise request whose file is generated while it is sent, and returns the hash of the file.
func stream(t *testing.T, s *Server, size int64) string {
	t.Helper()
	head := "--b\r\nContent-Disposition: form-data; name=\"api_token\"\r\n\r\ntoken-a\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"long.wav\"\r\n\r\n"
	tail := "\r\n--b--\r\n"
	sum := sha256.New()
	file := io.TeeReader(io.LimitReader(zeros{}, size), sum)
	req, err := http.NewRequest(http.MethodPost, s.EnterpriseURL, io.MultiReader(strings.NewReader(head), file, strings.NewReader(tail)))
	require.NoError(t, err)
	req.ContentLength = int64(len(head)) + size + int64(len(tail))
	req.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	r := do(newClient(t), req)
	require.NoError(t, r.err)
	require.Equal(t, 200, r.status)
	return hex.EncodeToString(sum.Sum(nil))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Not parallel: it measures what the process allocates.
func TestLargeBodyIsNotKeptInMemory(t *testing.T) {
	s := Start(t)
	stream(t, s, 1<<20) // warm up
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const size = 128 << 20
	hash := stream(t, s, size)
	runtime.ReadMemStats(&after)
	allocated := after.TotalAlloc - before.TotalAlloc
	require.Less(t, allocated, uint64(16<<20), "bytes allocated in sum for 128 MiB, client included")
	b := s.Bill()
	want := int64((size + 12*16_000 - 1) / (12 * 16_000))
	require.Equal(t, want, b.Content(PathEnterprise, hash).Units)
	require.EqualValues(t, 2, b.Complete)
}

func TestCloseEndsRunningAndHeldRequests(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{Limits: Limits{Latency: time.Hour}})
	s.Hold(Hold{Stage: StageBeforeBody, Name: "held*"})
	client := newClient(t)
	var wg sync.WaitGroup
	for i := range 10 {
		name := "waiting.mp3"
		if i%2 == 0 {
			name = "held.mp3"
		}
		req := clip(name, "x").request(t, s.URL)
		wg.Go(func() { do(client, req) })
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	require.NoError(t, err)
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
	require.NoError(t, err)
	proctest.Eventually(t, func() bool { return s.Bill().Active == 11 && len(s.Held()) == 5 })
	start := time.Now()
	require.NoError(t, s.Close())
	require.Less(t, time.Since(start), patience, "it does not wait for the latency")
	wg.Wait()
	require.NoError(t, conn.Close())
	require.NoError(t, s.Close(), "twice")
	require.Zero(t, s.Bill().Active)
}

func TestListenEndsWithItsContextAndReportsErrors(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Listen(ctx, "127.0.0.1:0", Config{})
	require.NoError(t, err)
	addr := strings.TrimPrefix(s.URL, "http://")
	_, err = Listen(ctx, addr, Config{})
	require.Error(t, err, "the port is taken")
	_, err = Listen(ctx, "127.0.0.1:0", Config{EnterpriseAddr: addr})
	require.Error(t, err)
	_, err = Listen(ctx, "127.0.0.1:0", Config{Quota: -1})
	require.ErrorContains(t, err, "quota")
	cancel()
	require.NoError(t, s.Wait())
	require.NoError(t, s.Close())
}

func TestMalformedRequestsGetCode700(t *testing.T) {
	t.Parallel()
	s := Start(t)
	for _, c := range []struct{ kind, body string }{
		{"multipart/form-data; boundary=b", "no boundary at all"},
		{"multipart/form-data", "--b"},
		{"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\ncut"},
		{"application/x-www-form-urlencoded", "%zz"},
		{"audio/mpeg", "ID3"},
		{"", "x"},
	} {
		req, err := http.NewRequest(http.MethodPost, s.URL+"/?api_token=t", strings.NewReader(c.body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", c.kind)
		require.Equal(t, 700, do(newClient(t), req).code(t), c.kind+" "+c.body)
	}
	require.Zero(t, s.Bill().Units)
}

func TestSimulatorIsAHandlerForAnyServer(t *testing.T) {
	t.Parallel()
	sim, err := New(Config{})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: sim, ReadHeaderTimeout: patience}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	r := do(newClient(t), clip("a.mp3", "x").request(t, "http://"+l.Addr().String()))
	require.NoError(t, r.err)
	sim.Close()
	require.NoError(t, server.Close())
	require.ErrorIs(t, <-done, http.ErrServerClosed)
}

// BenchmarkRequests sends small recognitions over kept connections. It should reach 3,000 per second.
func BenchmarkRequests(b *testing.B) {
	s := Start(b, Config{Rules: Samples(), Limits: Limits{Concurrency: 1000}})
	body := "--b\r\nContent-Disposition: form-data; name=\"api_token\"\r\n\r\ntoken-a\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.mp3\"\r\n\r\n%012d\r\n--b--\r\n"
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		r := bufio.NewReader(conn)
		for i := 0; pb.Next(); i++ {
			form := fmt.Sprintf(body, i)
			_, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n%s", len(form), form)
			if err != nil {
				b.Error(err)
				return
			}
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}
