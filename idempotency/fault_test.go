package idempotency_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/store"
	"reprise/tasks"
)

func TestOneOfManyConcurrentAttemptsLatches(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "reprise.db")
	one, _ := open(t, file)
	two, _ := open(t, file)
	for n := range int64(8) {
		var won, taken atomic.Int64
		var wg sync.WaitGroup
		for i := range 16 {
			l := one
			if i%2 == 0 {
				l = two
			}
			wg.Go(func() {
				_, err := l.Latch(context.Background(), attempt(n, fmt.Sprintf("%d-%d", n, i)))
				var e *idempotency.TakenError
				switch {
				case err == nil:
					won.Add(1)
				case errors.As(err, &e):
					taken.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.Equal(t, int64(1), won.Load())
		require.Equal(t, int64(15), taken.Load())
	}
}

// locked returns a ledger whose database another connection has locked.
func locked(t *testing.T) (l *idempotency.Ledger, unlock func()) {
	t.Helper()
	ctx := context.Background()
	file := filepath.Join(t.TempDir(), "reprise.db")
	cfg := config(file)
	cfg.BusyTimeout = 50 * time.Millisecond
	s, err := store.Open(ctx, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	l, err = idempotency.New(ctx, s.DB(), idempotency.DefaultConfig())
	require.NoError(t, err)
	db, err := sql.Open("sqlite", "file:"+file)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	conn, err := db.Conn(ctx)
	require.NoError(t, err)
	_, err = conn.ExecContext(ctx, "BEGIN EXCLUSIVE")
	require.NoError(t, err)
	return l, func() {
		_, err := conn.ExecContext(ctx, "ROLLBACK")
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
}

func TestLockedDatabaseFailsTheLatch(t *testing.T) {
	t.Parallel()
	l, unlock := locked(t)
	_, err := l.Latch(context.Background(), attempt(1, "a"))
	require.Error(t, err)
	require.True(t, store.IsUnavailable(err), "%v", err)
	_, err = l.Conclude(context.Background(), "a", idempotency.Conclusion{Effect: tasks.LatchReleased, At: start})
	require.True(t, store.IsUnavailable(err), "%v", err)
	require.False(t, look(t, l, "k1").Known, "a locked database can be read")
	unlock()
	require.Zero(t, conclude(t, l, "a", tasks.LatchReleased))
	require.Zero(t, latch(t, l, attempt(1, "b")).Generation)
}

func TestTimedOutLatchIsReleasedByItsAttempt(t *testing.T) {
	t.Parallel()
	l, unlock := locked(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	_, err := l.Latch(ctx, attempt(1, "a"))
	require.Error(t, err)
	unlock()
	cancelled, stop := context.WithCancel(context.Background())
	stop()
	_, err = l.Latch(cancelled, attempt(1, "a"))
	require.ErrorIs(t, err, context.Canceled)
	conclude(t, l, "a", tasks.LatchReleased)
	require.NoError(t, look(t, l, "k1").MaySend(start))

	// The commit succeeded but its reply was lost, so the attempt releases the latch.
	latch(t, l, attempt(1, "b"))
	require.Equal(t, idempotency.Released, conclude(t, l, "b", tasks.LatchReleased))
	require.Equal(t, int64(1), latch(t, l, attempt(1, "c")).Generation)
}

// A Latch that is cancelled at a random time leaves either no row or its own attempt's row. When the attempt releases
// the row, the key is free again.
func TestLatchCancelledAtAnyPointDoesNotBlockTheKey(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	for i := range 60 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i*20)*time.Microsecond)
		id := fmt.Sprint("cut", i)
		_, err := l.Latch(ctx, attempt(1, id))
		cancel()
		if err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		conclude(t, l, id, tasks.LatchReleased)
		require.NoError(t, look(t, l, "k1").MaySend(start))
	}
}

func TestStoreCommitsDurably(t *testing.T) {
	t.Parallel()
	_, s := open(t, filepath.Join(t.TempDir(), "reprise.db"))
	var synchronous int
	require.NoError(t, s.DB().QueryRow(`PRAGMA synchronous`).Scan(&synchronous))
	require.Equal(t, 2, synchronous, "FULL")
}

func TestConfigReportsEveryInvalidField(t *testing.T) {
	t.Parallel()
	require.NoError(t, idempotency.DefaultConfig().Validate())
	err := idempotency.Config{FirstByte: 0, Margin: 0, RetryWait: -1}.Validate()
	for _, name := range []string{"first_byte", "margin", "retry_wait"} {
		require.ErrorContains(t, err, name)
	}
	_, err = idempotency.New(context.Background(), nil, idempotency.Config{})
	require.Error(t, err)
}
