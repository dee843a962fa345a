package redisconn

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/redistest"
)

// Workers on a busy machine did not start when Redis needed more than 3 s to reply.
func TestPingWaitsForABusyRedis(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.NewServer(t).Addr())
	proxy.Delay(3200 * time.Millisecond)
	require.NoError(t, Ping(t.Context(), "redis://"+proxy.Addr()))
}

// Ctrl-C at the start of a worker had no effect until the time limit of the reply.
func TestPingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.NewServer(t).Addr())
	proxy.Blackhole()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	require.ErrorIs(t, Ping(ctx, "redis://"+proxy.Addr()), context.DeadlineExceeded)
	require.Less(t, time.Since(begun), pingReply)
}
