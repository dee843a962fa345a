package uploads

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"reprise/internal/proctest"
	"reprise/internal/redistest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(proctest.Build(redistest.Wrap(m), "worker", "enqueue"), redistest.IgnoreRedial())
}

// eventually polls so often that an interruption comes in the middle of a chunk.
func eventually(within time.Duration, ok func() bool) bool {
	return proctest.Poll(3*time.Millisecond, within, ok)
}
