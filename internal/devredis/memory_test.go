package devredis_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/devredis"
	"reprise/internal/proctest"
)

// It changes PATH, so it cannot run in parallel.
func TestWithoutRedisServerTheDataIsInMemoryAndTheNoteSaysSo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	inst := start(t, t.TempDir())
	require.False(t, inst.Durable)
	require.Contains(t, inst.Note, "in memory only")
	require.Contains(t, inst.Note, "apt-get install redis-server")
	require.NoError(t, client(t, inst).Ping(t.Context()).Err())
}

func TestRedisInMemoryExpiresKeys(t *testing.T) {
	t.Parallel()
	inst := inMemory(t)
	require.Contains(t, inst.Note, "in memory only")
	rdb := client(t, inst)
	require.NoError(t, rdb.Set(t.Context(), "k", "v", 300*time.Millisecond).Err())
	require.NoError(t, rdb.Set(t.Context(), "long", "v", time.Hour).Err())
	proctest.Eventually(t, func() bool { return rdb.Exists(t.Context(), "k").Val() == 0 })
	require.EqualValues(t, 1, rdb.Exists(t.Context(), "long").Val())
	require.NoError(t, inst.Close())
	<-inst.Done()
}

func inMemory(t *testing.T) *devredis.Instance {
	t.Helper()
	inst, err := devredis.StartMemory("as the test needs")
	require.NoError(t, err)
	t.Cleanup(func() { _ = inst.Close() })
	return inst
}
