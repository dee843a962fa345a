package redisconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/redistest"
)

// Workers on a busy machine did not start: Redis needed more than 3 s to answer.
func TestABusyRedisIsThere(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.NewServer(t).Addr())
	proxy.Delay(3200 * time.Millisecond)
	require.NoError(t, Ping(t.Context(), "redis://"+proxy.Addr()))
}
