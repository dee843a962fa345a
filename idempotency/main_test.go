package idempotency_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"reprise/idempotency"
	"reprise/store"
	"reprise/tasks"
)

func TestMain(m *testing.M) {
	if child := os.Getenv(childEnv); child != "" {
		os.Exit(runChild(child))
	}
	// A few long runs find more faults than many short runs, because a fault needs several sends of one key.
	settings := map[string]string{"rapid.steps": "120"}
	if underRace {
		settings = map[string]string{"rapid.steps": "60", "rapid.checks": "15"} // SQLite is ten times slower with the race detector
	}
	for name, value := range settings {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// start is the time of the first row in a test.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	timeout   = 10 * time.Minute
	margin    = 30 * time.Second
	retryWait = time.Minute
)

func config(file string) store.Config {
	cfg := store.DefaultConfig()
	cfg.URL = "sqlite:" + file
	cfg.BusyTimeout = time.Minute // a slow machine must not fail a test
	return cfg
}

// open opens a ledger on a store file. The ledger is closed when the test ends.
func open(t testing.TB, file string) (*idempotency.Ledger, *store.Store) {
	t.Helper()
	s, err := store.Open(context.Background(), config(file))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	l, err := idempotency.New(context.Background(), s.DB(), idempotency.DefaultConfig())
	require.NoError(t, err)
	return l, s
}

// fresh returns a ledger with a new file.
func fresh(t testing.TB) *idempotency.Ledger {
	t.Helper()
	l, _ := open(t, filepath.Join(t.TempDir(), "reprise.db"))
	return l
}

// attempt returns a request for key "k<n>" and slot n at time start.
func attempt(n int64, id string) idempotency.LatchRequest {
	return idempotency.LatchRequest{
		Key: fmt.Sprintf("k%d", n), AttemptID: id, Source: "main", AudioID: n, SHA256: fmt.Sprintf("sha%d", n),
		Timeout: timeout, At: start,
	}
}

func latch(t testing.TB, l *idempotency.Ledger, a idempotency.LatchRequest) idempotency.Latched {
	t.Helper()
	got, err := l.Latch(context.Background(), a)
	require.NoError(t, err)
	return got
}

// refused returns the error of a Latch that must fail.
func refused[E error](t testing.TB, l *idempotency.Ledger, a idempotency.LatchRequest) E {
	t.Helper()
	var want E
	got, err := l.Latch(context.Background(), a)
	require.ErrorAs(t, err, &want)
	require.Zero(t, got)
	return want
}

// effects lists all reports of an attempt, in the order of doc.go's table.
var effects = []tasks.LatchEffect{tasks.LatchSettled, tasks.LatchReleased, tasks.LatchRejected, tasks.LatchUncertain}

var outcomes = map[tasks.LatchEffect]tasks.Outcome{
	tasks.LatchSettled: tasks.Uploaded, tasks.LatchReleased: tasks.Throttled,
	tasks.LatchRejected: tasks.InvalidAudio, tasks.LatchUncertain: tasks.Ambiguous,
}

func conclude(t testing.TB, l *idempotency.Ledger, id string, e tasks.LatchEffect) idempotency.State {
	t.Helper()
	got, err := l.Conclude(context.Background(), id, idempotency.Conclusion{
		Effect: e, Outcome: outcomes[e], Reason: string(outcomes[e]), RequestID: "req-" + id, At: start.Add(time.Minute),
	})
	require.NoError(t, err)
	return got
}

func look(t testing.TB, l *idempotency.Ledger, key string) idempotency.UploadStatus {
	t.Helper()
	st, err := l.Status(context.Background(), key)
	require.NoError(t, err)
	return st
}

func expire(t testing.TB, l *idempotency.Ledger, key string, after time.Duration) idempotency.UploadStatus {
	t.Helper()
	st, err := l.Expire(context.Background(), key, start.Add(after))
	require.NoError(t, err)
	return st
}

func act(after time.Duration) idempotency.Action {
	return idempotency.Action{By: "mia", Why: "looked it up", At: start.Add(after)}
}

// inState brings key k<n> into a state by attempt a<n> in generation 0.
func inState(t testing.TB, l *idempotency.Ledger, n int64, s idempotency.State) {
	t.Helper()
	if s == idempotency.Free {
		claim(t, l, claimOf(n))
		return
	}
	id := fmt.Sprintf("a%d", n)
	latch(t, l, attempt(n, id))
	if s != idempotency.Sent {
		conclude(t, l, id, tasks.LatchEffect(s))
	}
}

func claimOf(n int64) idempotency.Claim {
	a := attempt(n, "")
	return idempotency.Claim{Source: a.Source, AudioID: a.AudioID, Key: a.Key, SHA256: a.SHA256, At: start}
}

func claim(t testing.TB, l *idempotency.Ledger, c idempotency.Claim) idempotency.Claimed {
	t.Helper()
	got, err := l.Claim(context.Background(), c)
	require.NoError(t, err)
	require.Len(t, got, 1)
	return got[0]
}
