package store_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/store"
	"reprise/tasks"
)

func TestStoreURL_ReturnsAFilePathOrAnError(t *testing.T) {
	t.Parallel()
	for url, file := range map[string]string{
		"sqlite:r.db":         "r.db",
		" sqlite:r.db \n":     "r.db",
		"sqlite: r.db":        "r.db",
		"SQLite:r.db":         "r.db",
		"sqlite:/data/r.db":   "/data/r.db",
		"sqlite:///data/r.db": "/data/r.db",
		"sqlite:my store.db":  "my store.db",
		"sqlite:./r%20.db":    "./r%20.db",
		"sqlite://r.db":       "",
		"sqlite://host/r.db":  "",
		"sqlite:////r.db":     "",
		"sqlite:r.db?mode=ro": "",
		"sqlite:r.db?":        "",
		"sqlite:file:r.db":    "",
		"sqlite:r\n.db":       "",
		"sqlite:r.db\x00":     "",
		"sqlite:data/":        "",
		"sqlite::memory:":     "",
		"sqlite: ":            "",
		"sqlite3:r.db":        "",
		"r.db":                "",
		"/data/r.db":          "",
		"":                    "",
	} {
		cfg := store.DefaultConfig()
		cfg.URL = url
		got, err := cfg.File()
		require.Equal(t, file, got, "%q", url)
		if file == "" {
			require.ErrorContains(t, err, "store url: ", "%q", url)
		}
	}
}

func TestMark_IsSetAfterEachWriteAndMissingInAnOlderCopy(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "reprise.db")
	first, second := open(t, file), open(t, file)
	identity := func(s *store.Store) store.Identity {
		id, err := store.MarksOf(s).Identity(t.Context())
		require.NoError(t, err)
		return id
	}
	born := identity(first)
	require.NotEmpty(t, born.ID)
	require.Contains(t, born.Name, file)
	require.NoError(t, store.MarksOf(first).Set(t.Context(), false))
	require.Equal(t, born, identity(second), "nothing was written")
	copied := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, first.Backup(t.Context(), copied))
	require.NoError(t, second.Settle(t.Context(), attempt("l", 0, "b", tasks.Done, tasks.Match, 1)))
	require.NoError(t, store.MarksOf(first).Set(t.Context(), false))
	require.Equal(t, born, identity(first), "the process that wrote sets the mark")
	require.NoError(t, store.MarksOf(second).Set(t.Context(), false))
	marked := identity(first)
	require.Equal(t, born.ID, marked.ID)
	require.EqualValues(t, 1, marked.Seq)
	has := func(s *store.Store) bool {
		t.Helper()
		found, err := store.MarksOf(s).Has(t.Context(), marked)
		require.NoError(t, err)
		return found
	}
	older, other := open(t, copied), open(t, filepath.Join(t.TempDir(), "reprise.db"))
	require.NoError(t, store.MarksOf(older).Set(t.Context(), true))
	require.EqualValues(t, 1, identity(older).Seq, "the copy has its own later marks")
	require.Equal(t, []bool{true, true, false, false}, []bool{has(first), has(second), has(older), has(other)})
	require.NotEqual(t, born.ID, identity(other).ID)
	for range 1005 {
		require.NoError(t, store.MarksOf(first).Set(t.Context(), true))
	}
	require.False(t, has(first), "only the latest 1,000 are kept")
}

func TestBackup_ContainsAllCommitsAndOverwritesNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "reprise.db"))
	writing, stop := context.WithCancel(t.Context())
	done := make(chan int)
	go func() { // another writer keeps most of the data in the write-ahead log
		n := 0
		for ; writing.Err() == nil; n++ {
			if err := s.Settle(context.WithoutCancel(writing), attempt("k"+string(rune('a'+n%26)), 0, "a"+string(rune('a'+n%26)), tasks.Done, tasks.Match, 1)); err != nil {
				break
			}
		}
		done <- n
	}()
	require.NoError(t, s.Settle(t.Context(), attempt("before", 0, "x", tasks.Done, tasks.Match, 1)))
	before, err := store.MarksOf(s).Identity(t.Context())
	require.NoError(t, err)
	copied := filepath.Join(dir, "copy.db")
	require.NoError(t, s.Backup(t.Context(), copied))
	stop()
	require.Positive(t, <-done)
	info, err := os.Stat(copied)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "payloads are for this user only")
	restored := open(t, copied)
	require.True(t, status(t, restored, "before").Finished)
	after, err := store.MarksOf(restored).Identity(t.Context())
	require.NoError(t, err)
	require.Equal(t, before.ID, after.ID)
	require.ErrorContains(t, s.Backup(t.Context(), copied), "already exists")
}
