package ops

import (
	"os"
	"testing"
	"time"

	"reprise/internal/redistest"
	"reprise/internal/text"
)

func TestMain(m *testing.M) { os.Exit(redistest.Wrap(m).Run()) }

// now is the time of all evidence.
var now = time.Date(2026, 11, 30, 14, 0, 0, 0, time.UTC)

var utc = text.Times{Zone: time.UTC, Now: now}
