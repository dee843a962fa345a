package admission

import (
	"testing"

	"go.uber.org/goleak"

	"reprise/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.Wrap(m), redistest.IgnoreRedial()) }
