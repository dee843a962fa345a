package uploadcrash

import (
	"testing"

	"go.uber.org/goleak"

	"reprise/internal/proctest"
	"reprise/internal/redistest"
)

func TestMain(m *testing.M) {
	proctest.AtOnce(16) // cells mostly wait for leases, permits and locks
	goleak.VerifyTestMain(proctest.Build(redistest.Wrap(m), "worker"), redistest.IgnoreRedial())
}

const patience = proctest.Patience
