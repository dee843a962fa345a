package identity_test

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"reprise/internal/redistest"
	"reprise/store"
	"reprise/store/identity"
	"reprise/tasks"
)

// write commits a row that an older copy lacks.
func write(t *testing.T, s *store.Store) error {
	t.Helper()
	_, err := s.Register(t.Context(), []store.Submission{{ID: rand.Text(), Batch: "b", Key: "k", Path: tasks.Recognize, At: time.Now()}})
	return err
}

func TestMain(m *testing.M) { os.Exit(redistest.Wrap(m).Run()) }

func open(t *testing.T, file string) *store.Store {
	t.Helper()
	cfg := store.DefaultConfig()
	cfg.URL = "sqlite:" + file
	s, err := store.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestClaim_FirstStoreOwnsRedisAndOthersAreRefused(t *testing.T) {
	t.Parallel()
	rdb, dir := redistest.DB(t), t.TempDir()
	first, second := open(t, filepath.Join(dir, "first.db")), open(t, filepath.Join(dir, "second.db"))
	require.NoError(t, identity.Check(t.Context(), rdb, store.MarksOf(second)), "Redis remembers none")
	require.NoError(t, identity.Claim(t.Context(), rdb, store.MarksOf(first)))
	require.NoError(t, identity.Claim(t.Context(), rdb, store.MarksOf(first)))
	for _, check := range []func() error{
		func() error { return identity.Claim(t.Context(), rdb, store.MarksOf(second)) },
		func() error { return identity.Check(t.Context(), rdb, store.MarksOf(second)) },
	} {
		err := check()
		mismatch := new(identity.MismatchError)
		require.ErrorAs(t, err, &mismatch)
		require.ErrorContains(t, err, "first.db")
		require.ErrorContains(t, err, "second.db")
		require.ErrorContains(t, err, "inspect store adopt")
	}
	replaced, err := identity.Adopt(t.Context(), rdb, store.MarksOf(second))
	require.NoError(t, err)
	require.Contains(t, replaced.Name, "first.db")
	require.NoError(t, identity.Claim(t.Context(), rdb, store.MarksOf(second)))
	require.Error(t, identity.Claim(t.Context(), rdb, store.MarksOf(first)))
}

func TestClaim_OlderAndDivergedCopiesAreRefused(t *testing.T) {
	t.Parallel()
	rdb, dir := redistest.DB(t), t.TempDir()
	first := open(t, filepath.Join(dir, "first.db"))
	require.NoError(t, write(t, first))
	require.NoError(t, identity.Claim(t.Context(), rdb, store.MarksOf(first)))
	require.NoError(t, first.Backup(t.Context(), filepath.Join(dir, "copy.db")))
	copied := open(t, filepath.Join(dir, "copy.db"))
	require.NoError(t, identity.Claim(t.Context(), rdb, store.MarksOf(copied)), "a fresh copy lacks no mark")
	for range 3 { // the copy gets its own marks and still lacks the original's
		require.NoError(t, write(t, first))
		require.NoError(t, identity.Claim(t.Context(), rdb, store.MarksOf(first)))
		for range 3 {
			require.NoError(t, store.MarksOf(copied).Set(t.Context(), true))
			require.ErrorContains(t, identity.Claim(t.Context(), rdb, store.MarksOf(copied)), "is an older copy: ")
		}
	}
	require.NoError(t, identity.Claim(t.Context(), rdb, store.MarksOf(first)), "a refused claim changes nothing")
	_, err := identity.Adopt(t.Context(), rdb, store.MarksOf(copied))
	require.NoError(t, err)
	require.NoError(t, identity.Claim(t.Context(), rdb, store.MarksOf(copied)))
	require.ErrorContains(t, identity.Claim(t.Context(), rdb, store.MarksOf(first)), "is an older copy: ")
}

func TestClaim_ManyProcessesShareOneStore(t *testing.T) {
	t.Parallel()
	rdb, file := redistest.DB(t), filepath.Join(t.TempDir(), "shared.db")
	var group errgroup.Group
	for range 4 {
		s := open(t, file)
		group.Go(func() error {
			for range 50 {
				if err := errors.Join(write(t, s), identity.Claim(t.Context(), rdb, store.MarksOf(s))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
}
