package store_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/store"
	"reprise/tasks"
)

func TestOpenMigratesAnEmptyFileOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "odd name #%25&.db")
	first := open(t, file)
	require.NoError(t, first.Settle(context.Background(), attempt("k", 0, "a", tasks.Done, tasks.Match, 1)))
	second := open(t, file)
	require.True(t, status(t, second, "k").Finished)

	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "only this user may read payloads")

	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "60000",
	} {
		var got string
		require.NoError(t, first.DB().QueryRow("PRAGMA "+pragma).Scan(&got))
		require.Equal(t, want, got, pragma)
	}
}

func TestOpenErrorIsOneLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	noDatabase := filepath.Join(dir, "notes.txt")
	require.NoError(t, os.WriteFile(noDatabase, []byte("these are my notes, not a database, and long enough to see it"), 0o600))
	newer := filepath.Join(dir, "newer.db")
	func() {
		s, err := store.Open(context.Background(), config(newer))
		require.NoError(t, err)
		_, err = s.DB().Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9001, 1)`)
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}()
	for name, row := range map[string]struct{ url, want string }{
		"a folder":                 {"sqlite:" + dir, "is a folder, not a file"},
		"not a database":           {"sqlite:" + noDatabase, "the file is not a SQLite database"},
		"newer schema":             {"sqlite:" + newer, "is newer than this build"},
		"folder cannot be created": {"sqlite:" + noDatabase + "/sub/reprise.db", "not a directory"},
		"memory":                   {"sqlite::memory:", "in-memory database"},
		"no scheme":                {"reprise.db", "must be sqlite:PATH"},
		"PostgreSQL":               {"postgres://app:secret@db/app", "does not support PostgreSQL"},
		"unknown scheme":           {"mysql://app:secret@db/app", "unknown scheme"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := store.DefaultConfig()
			cfg.URL = row.url
			_, err := store.Open(context.Background(), cfg)
			require.ErrorContains(t, err, row.want)
			require.ErrorContains(t, err, "open store")
			require.NotContains(t, err.Error(), "secret")
			require.NotContains(t, err.Error(), "\n", "one line")
		})
	}
}

func TestOpenWaitsForAnotherMigration(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "reprise.db")
	conn, err := raw(t, file+"-migrate", "").Conn(context.Background())
	require.NoError(t, err)
	_, err = conn.ExecContext(context.Background(), "BEGIN EXCLUSIVE")
	require.NoError(t, err)
	waited := false
	for within := 50 * time.Millisecond; !waited && within < time.Minute; within *= 4 { // a short deadline may end before Open reaches the lock
		ctx, cancel := context.WithTimeout(context.Background(), within)
		_, err = store.Open(ctx, config(file))
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		waited = strings.Contains(err.Error(), "take the migration lock")
	}
	require.True(t, waited, err)

	_, err = conn.ExecContext(context.Background(), "ROLLBACK")
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.NoError(t, open(t, file).Ping(context.Background()))
}

func TestValidateNamesInvalidSettings(t *testing.T) {
	t.Parallel()
	err := store.Config{URL: "sqlite:x.db", BusyTimeout: -time.Second, MaxConns: 1}.Validate()
	require.ErrorContains(t, err, "busy_timeout")
	require.ErrorContains(t, err, "max_conns")
	require.NoError(t, store.DefaultConfig().Validate())
}

func TestClosedStoreIsUnavailable(t *testing.T) {
	t.Parallel()
	s, err := store.Open(context.Background(), config(filepath.Join(t.TempDir(), "reprise.db")))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "Close may be called twice")
	_, readErr := s.TaskStatus(context.Background(), "k")
	for _, err := range []error{
		readErr, s.Ping(context.Background()),
		s.Settle(context.Background(), attempt("k", 0, "a", tasks.Done, tasks.Match, 1)),
	} {
		require.ErrorIs(t, err, store.ErrClosed)
		require.True(t, store.IsUnavailable(err))
	}
}

// raw opens a SQLite file without package store, as another program would.
func raw(t *testing.T, file, options string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?"+options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}
