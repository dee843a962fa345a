package blackbox

import (
	"testing"

	"go.uber.org/goleak"

	"reprise/internal/proctest"
	"reprise/internal/redistest"
)

func TestMain(m *testing.M) {
	proctest.AtOnce(12) // these tests mostly wait for leases, backoffs and outages
	goleak.VerifyTestMain(proctest.Build(redistest.Wrap(m), "worker", "auddsim", "enqueue", "inspect"), redistest.IgnoreRedial())
}

const patience = proctest.Patience
