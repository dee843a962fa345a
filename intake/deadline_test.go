package intake

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/redisconn"
	"reprise/internal/redistest"
)

// A chunk that took longer than redisTimeout in total used to fail in part, on a
// busy machine or with a distant Redis.
func TestEnqueueWaitsForASlowRedisThatMakesProgress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	srv := redistest.NewServer(t)
	proxy := redistest.NewProxy(t, srv.Addr())
	rdb, err := redisconn.Queue("redis://"+proxy.Addr(), enqueuers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	b.Intake, err = New(Options{Redis: rdb, Store: b.store})
	require.NoError(t, err)
	inputs := make([]string, registerChunk)
	for i := range inputs {
		inputs[i] = fmt.Sprintf("https://h/%d.mp3", i)
	}
	rounds := registerChunk/enqueuers + 1
	proxy.Delay((redisTimeout + time.Second) / time.Duration(rounds))
	p := b.enqueue(Request{}, inputs...)
	proxy.Restore()
	require.Equal(t, registerChunk, p.Counts().ByStatus[Queued])
}
