package uploads

import (
	"testing"

	"go.uber.org/goleak"

	"reprise/internal/proctest"
	"reprise/internal/redistest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(proctest.Build(redistest.Wrap(m), "worker", "enqueue"), redistest.IgnoreRedial())
}

const patience = proctest.Patience
