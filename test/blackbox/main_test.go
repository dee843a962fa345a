package blackbox

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"reprise/internal/proctest"
	"reprise/internal/redistest"
)

func TestMain(m *testing.M) {
	proctest.AtOnce(12) // they wait for leases, backoffs and outages most of the time
	goleak.VerifyTestMain(proctest.Build(redistest.Wrap(m), "worker", "auddsim", "enqueue"), redistest.IgnoreRedial())
}

func eventually(within time.Duration, ok func() bool) bool {
	return proctest.Poll(25*time.Millisecond, within, ok)
}
