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

// patience bounds waits for what must come. It is there only to end a test that
// hangs: a machine that is busy with others makes every step slow.
const patience = 2 * time.Minute

func eventually(within time.Duration, ok func() bool) bool {
	return proctest.Poll(within, ok)
}
