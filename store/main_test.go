package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"reprise/store"
	"reprise/tasks"
)

func TestMain(m *testing.M) {
	if child := os.Getenv(childEnv); child != "" {
		os.Exit(runChild(child))
	}
	goleak.VerifyTestMain(m)
}

// start is the time of the tests' earliest rows.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// open opens a store. The store is closed when the test ends.
func open(t testing.TB, file string) *store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), config(file))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func config(file string) store.Config {
	cfg := store.DefaultConfig()
	cfg.URL = "sqlite:" + file
	cfg.BusyTimeout = time.Minute // tests must not fail on a slow machine
	return cfg
}

// fresh returns a store with a new file.
func fresh(t testing.TB) *store.Store {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "reprise.db"))
}

// attempt returns a settlement with a call at n milliseconds after start.
func attempt(key string, generation int64, id string, v tasks.Verdict, o tasks.Outcome, n int) store.Settlement {
	at := start.Add(time.Duration(n) * time.Millisecond)
	st := store.Settlement{
		Key: key, Generation: generation, Path: tasks.Recognize, Queue: "recognize", At: at,
		Finished: v == tasks.Done || v == tasks.Archive || v == tasks.Hold,
		Verdict:  v, Outcome: o, Reason: string(o) + " of " + id,
		Call: &store.Call{
			AttemptID: id, Key: key, Generation: generation, Source: "main", Path: tasks.Recognize, Outcome: o, Verdict: v,
			Phase: "answered", Units: 1, UnitBasis: "estimated", Latency: 1500 * time.Microsecond, At: at,
		},
	}
	if v == tasks.Done {
		st.Result = []byte(fmt.Sprintf(`{"by":%q}`, id))
	}
	return st
}

func status(t testing.TB, s *store.Store, key string) store.TaskStatus {
	t.Helper()
	st, err := s.TaskStatus(context.Background(), key)
	require.NoError(t, err)
	return st
}

func calls(t testing.TB, s *store.Store, key string) []store.Call {
	t.Helper()
	found, err := s.Calls(context.Background(), store.CallFilter{Key: key})
	require.NoError(t, err)
	return found
}
