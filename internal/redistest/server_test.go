package redistest_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/internal/redistest"
)

func TestDBIsEmptyAndNotShared(t *testing.T) {
	t.Parallel()
	a, b := redistest.DB(t), redistest.DB(t)
	require.NoError(t, a.Set(t.Context(), "k", "a", 0).Err())
	require.ErrorIs(t, b.Get(t.Context(), "k").Err(), redis.Nil)
}

func TestURLOfAClientNamesItsDatabase(t *testing.T) {
	t.Parallel()
	a := redistest.DB(t)
	require.NoError(t, a.Set(t.Context(), "k", "v", 0).Err())
	opts, err := redis.ParseURL(redistest.URL(a))
	require.NoError(t, err)
	b := redis.NewClient(opts)
	defer b.Close()
	require.Equal(t, "v", b.Get(t.Context(), "k").Val())
}

func TestServerWithAOFKeepsDataAndAddressAfterAKill(t *testing.T) {
	t.Parallel()
	s := redistest.NewServer(t, redistest.AOF("always"))
	rdb := s.Client()
	require.NoError(t, rdb.Set(t.Context(), "k", "v", 0).Err())
	addr := s.Addr()
	s.Kill()
	require.Error(t, rdb.Ping(t.Context()).Err())
	s.Start()
	require.Equal(t, addr, s.Addr())
	require.Equal(t, "v", rdb.Get(t.Context(), "k").Val())
	s.Stop()
	s.Start()
	require.Equal(t, "v", rdb.Get(t.Context(), "k").Val())
}

func TestServerWithoutAOFLosesData(t *testing.T) {
	t.Parallel()
	s := redistest.NewServer(t)
	rdb := s.Client()
	require.NoError(t, rdb.Set(t.Context(), "k", "v", 0).Err())
	s.Stop()
	s.Start()
	require.ErrorIs(t, rdb.Get(t.Context(), "k").Err(), redis.Nil)
}

func TestPasswordIsRequiredAndInTheURL(t *testing.T) {
	t.Parallel()
	s := redistest.NewServer(t, redistest.Password(`p@ss/w?rd#%`))
	require.NoError(t, s.Client().Ping(t.Context()).Err())
	opts, err := redis.ParseURL(s.URL())
	require.NoError(t, err)
	rdb := redis.NewClient(opts)
	defer rdb.Close()
	require.NoError(t, rdb.Ping(t.Context()).Err())
	bare := impatient(t, s.Addr())
	require.ErrorContains(t, bare.Ping(t.Context()).Err(), "NOAUTH")
}

// patience ends a test that hangs.
const patience = time.Minute

// impatient returns a client without retries and with a read timeout of 1 s, which
// is enough on a busy machine.
func impatient(t *testing.T, addr string) *redis.Client {
	t.Helper()
	return impatientOn(t, addr, 0)
}

func impatientOn(t *testing.T, addr string, db int) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr: addr, DB: db, MaxRetries: -1, ReadTimeout: time.Second,
		DialTimeout: patience, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
