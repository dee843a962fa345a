package redistest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/internal/proctest"
	"reprise/internal/redistest"
)

func TestCutRefusesConnectionsUntilRestore(t *testing.T) {
	t.Parallel()
	p := redistest.NewProxy(t, redistest.DB(t).Options().Addr)
	rdb := impatient(t, p.Addr())
	require.NoError(t, rdb.Ping(t.Context()).Err())
	p.Cut()
	require.Error(t, rdb.Ping(t.Context()).Err())
	require.ErrorContains(t, rdb.Ping(t.Context()).Err(), "refused")
	p.Restore()
	require.NoError(t, rdb.Ping(t.Context()).Err())
}

func TestBlackholeForwardsRequestsAndDropsReplies(t *testing.T) {
	t.Parallel()
	db := redistest.DB(t)
	p := redistest.NewProxy(t, db.Options().Addr)
	rdb := sameDB(t, db, p.Addr())
	require.NoError(t, rdb.Incr(t.Context(), "n").Err())
	p.Blackhole()
	require.ErrorContains(t, rdb.Incr(t.Context(), "n").Err(), "timeout")
	proctest.Eventually(t, func() bool { return db.Get(t.Context(), "n").Val() == "2" })
	p.Restore()
	require.NoError(t, rdb.Incr(t.Context(), "n").Err())
	require.Equal(t, "3", db.Get(t.Context(), "n").Val())
}

func TestBlackholeAtBeginsWithTheMatchingRequest(t *testing.T) {
	t.Parallel()
	db := redistest.DB(t)
	p := redistest.NewProxy(t, db.Options().Addr)
	rdb := sameDB(t, db, p.Addr())
	silent := p.BlackholeAt(redistest.Containing("counter"))
	require.NoError(t, rdb.Incr(t.Context(), "other").Err())
	require.ErrorContains(t, rdb.Incr(t.Context(), "counter").Err(), "timeout")
	<-silent
	require.ErrorContains(t, rdb.Incr(t.Context(), "other").Err(), "timeout")
	p.Restore()
	require.Equal(t, "1", db.Get(t.Context(), "counter").Val())
	require.NoError(t, rdb.Incr(t.Context(), "counter").Err())
}

func TestLoseReplyDropsTheReplyToOneExecutedRequest(t *testing.T) {
	t.Parallel()
	db := redistest.DB(t)
	p := redistest.NewProxy(t, db.Options().Addr)
	rdb := sameDB(t, db, p.Addr())
	fired := p.LoseReply(redistest.Containing("incr", "counter"))
	require.NoError(t, rdb.Incr(t.Context(), "other").Err())
	require.Error(t, rdb.Incr(t.Context(), "counter").Err())
	<-fired
	require.Equal(t, "1", db.Get(t.Context(), "counter").Val())
	require.NoError(t, rdb.Incr(t.Context(), "counter").Err())
	require.Equal(t, "2", db.Get(t.Context(), "counter").Val())
}

func TestLoseRequestDropsOneRequestBeforeItIsExecuted(t *testing.T) {
	t.Parallel()
	db := redistest.DB(t)
	p := redistest.NewProxy(t, db.Options().Addr)
	rdb := sameDB(t, db, p.Addr())
	fired := p.LoseRequest(redistest.Containing("counter"))
	require.Error(t, rdb.Incr(t.Context(), "counter").Err())
	<-fired
	require.NoError(t, rdb.Incr(t.Context(), "counter").Err())
	require.Equal(t, "1", db.Get(t.Context(), "counter").Val())
}

func TestDelayDelaysReplies(t *testing.T) {
	t.Parallel()
	p := redistest.NewProxy(t, redistest.DB(t).Options().Addr)
	rdb := impatient(t, p.Addr())
	require.NoError(t, rdb.Ping(t.Context()).Err())
	p.Delay(80 * time.Millisecond)
	start := time.Now()
	require.NoError(t, rdb.Ping(t.Context()).Err())
	require.GreaterOrEqual(t, time.Since(start), 80*time.Millisecond)
	p.Restore()
}

func TestLoseReplyMatchesAnHTTPRequestOfSeveralChunks(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		calls.Add(1)
		_, _ = io.WriteString(w, "done")
	}))
	defer srv.Close()
	p := redistest.NewProxy(t, srv.Listener.Addr().String())
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	fired := p.LoseReply(redistest.Containing("end-of-body"))
	body := strings.Repeat("x", 100<<10) + "end-of-body"
	resp, err := client.Post("http://"+p.Addr(), "text/plain", strings.NewReader(body))
	if err == nil {
		resp.Body.Close()
	}
	require.Error(t, err)
	<-fired
	require.EqualValues(t, 1, calls.Load())
	resp, err = client.Post("http://"+p.Addr(), "text/plain", strings.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "done", string(answer))
}

func TestProxyWorksAgainAfterItsServerRestarts(t *testing.T) {
	t.Parallel()
	s := redistest.NewServer(t)
	p := redistest.NewProxy(t, s.Addr())
	rdb := impatient(t, p.Addr())
	s.Stop()
	require.Error(t, rdb.Ping(t.Context()).Err())
	s.Start()
	require.NoError(t, rdb.Ping(t.Context()).Err())
}

// sameDB returns an impatient client on db's database at another address.
func sameDB(t *testing.T, db *redis.Client, addr string) *redis.Client {
	t.Helper()
	return impatientOn(t, addr, db.Options().DB)
}
