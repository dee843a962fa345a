package fleet

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"reprise/internal/proctest"
	"reprise/internal/redisconn"
	"reprise/internal/redistest"
)

func TestMain(m *testing.M) {
	if raw := os.Getenv(workerEnv); raw != "" {
		os.Exit(runWorker(raw)) // this process is a worker of a test
	}
	proctest.AtOnce(8) // these tests mostly wait for cooldowns, leases and cuts
	redisconn.SetLogger(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(redistest.Wrap(m), redistest.IgnoreRedial())
}

// turn is the pause between two checks of turns.
const turn = 5 * time.Millisecond

// turns waits until ok is true and returns the number of its pauses as a time.
// On a quiet machine that is the time that passed; on a busy machine, where
// every process is slow, it is less. Promised durations are compared with it.
func turns(tb testing.TB, ok func() bool, msgAndArgs ...any) (took time.Duration) {
	tb.Helper()
	proctest.Eventually(tb, func() bool {
		for range 100 {
			if ok() {
				return true
			}
			proctest.Pass(turn)
			took += turn
		}
		return false
	}, msgAndArgs...)
	return took
}
