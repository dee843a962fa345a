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
		os.Exit(beWorker(raw)) // this process is a worker of a test
	}
	proctest.AtOnce(8) // they wait for cooldowns, leases and cuts most of the time
	redisconn.SetLogger(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(redistest.Wrap(m), redistest.IgnoreRedial())
}

// busy stretches every wait for a state: it bounds a test that is stuck on a
// machine that is shared, and measures nothing.
const busy = 4

// eventually polls until ok, or not within (stretched) time.
func eventually(within time.Duration, ok func() bool) bool {
	return proctest.Poll(busy*within, ok)
}

// turn is what turns asks to sleep between two looks.
const turn = 5 * time.Millisecond

// turns polls like eventually and measures how long that took in turns of its
// own: on a quiet machine a clock, on a starved one, where nobody gets ahead,
// slow to move. What the product promises within a time is held to it.
func turns(within time.Duration, ok func() bool) (took time.Duration, done bool) {
	for deadline := time.Now().Add(busy * within); !ok(); took += turn {
		if time.Now().After(deadline) {
			return took, false
		}
		proctest.Pass(turn)
	}
	return took, true
}
