package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/store"
	"reprise/tasks"
)

func TestStoreLockedByAnotherProcessIsUnavailableAndRecovers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	file := filepath.Join(t.TempDir(), "reprise.db")
	cfg := config(file)
	cfg.BusyTimeout = 50 * time.Millisecond
	s, err := store.Open(ctx, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	done := attempt("k", 0, "a", tasks.Done, tasks.Match, 1)

	for _, lock := range []string{"BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"} {
		conn, err := raw(t, file, "").Conn(ctx)
		require.NoError(t, err)
		_, err = conn.ExecContext(ctx, lock)
		require.NoError(t, err)

		require.True(t, store.IsUnavailable(s.Settle(ctx, done)), lock)
		require.True(t, store.IsUnavailable(s.Ping(ctx)), lock)
		_, err = s.Register(ctx, []store.Submission{submission("s", "b", "k")})
		require.True(t, store.IsUnavailable(err), lock)
		_, err = s.Reopen(ctx, "k", 0)
		require.True(t, store.IsUnavailable(err), lock)
		require.False(t, status(t, s, "k").Known, "reads work while another process writes")

		_, err = conn.ExecContext(ctx, "ROLLBACK")
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		require.NoError(t, s.Ping(ctx))
	}
	require.NoError(t, s.Settle(ctx, done))
	require.True(t, status(t, s, "k").Finished)
}

func TestExceededDeadlineInALockedStoreIsUnavailable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "reprise.db")
	cfg := config(file)
	cfg.BusyTimeout = time.Minute
	s, err := store.Open(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	conn, err := raw(t, file, "").Conn(context.Background())
	require.NoError(t, err)
	_, err = conn.ExecContext(context.Background(), "BEGIN IMMEDIATE")
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	err = s.Settle(ctx, attempt("k", 0, "a", tasks.Done, tasks.Match, 1))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.True(t, store.IsUnavailable(err), "an exceeded deadline means unavailable")

	cancelled, stop := context.WithCancel(context.Background())
	stop()
	err = s.Settle(cancelled, attempt("k", 0, "b", tasks.Done, tasks.Match, 1))
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, store.IsUnavailable(err), "a cancelled caller does not mean unavailable")

	_, err = conn.ExecContext(context.Background(), "ROLLBACK")
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

func TestIsUnavailableSeparatesStoreFailuresFromProgrammingErrors(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	file := filepath.Join(t.TempDir(), "reprise.db")
	s := open(t, file)

	_, err := raw(t, file, "mode=ro").ExecContext(ctx, `INSERT INTO probe (id, at) VALUES (7, 7)`)
	require.True(t, store.IsUnavailable(err), "read-only")
	require.True(t, store.IsUnavailable(fmt.Errorf("settle: %w", err)), "wrapped")

	_, err = raw(t, file, "_pragma=max_page_count(1)").ExecContext(ctx,
		`INSERT INTO task (key, path, queue, payload, created_at, updated_at) VALUES ('k', 'p', 'q', zeroblob(4000000), 1, 1)`)
	require.True(t, store.IsUnavailable(err), "disk full")

	_, err = s.DB().ExecContext(ctx, `SELECT no_such_column FROM task`)
	require.Error(t, err)
	require.False(t, store.IsUnavailable(err), "wrong SQL")
	_, err = s.DB().ExecContext(ctx, `INSERT INTO result (key, generation, verdict, outcome, finished_at)
		VALUES ('nobody', 0, 'done', 'match', 1)`)
	require.Error(t, err)
	require.False(t, store.IsUnavailable(err), "constraint")

	require.True(t, store.IsUnavailable(sql.ErrConnDone))
	require.False(t, store.IsUnavailable(nil))
	require.False(t, store.IsUnavailable(errors.New("something else")))
	require.False(t, store.IsUnavailable(store.ErrInvalid))
	require.False(t, store.IsUnavailable(store.ErrUnknownKey))
}
