package fleet

import (
	"flag"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"

	"reprise/internal/redisconn"
	"reprise/internal/redistest"
)

func TestMain(m *testing.M) {
	if raw := os.Getenv(workerEnv); raw != "" {
		os.Exit(beWorker(raw)) // this process is a worker of a test
	}
	manyAtOnce()
	redisconn.SetLogger(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(redistest.Wrap(m), redistest.IgnoreRedial(), goleak.IgnoreTopFunction(spawnerFunction))
}

// atOnce is how many tests run at the same time, unless -parallel says it:
// they wait for cooldowns, leases and cuts most of the time.
const atOnce = "8"

func manyAtOnce() {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", atOnce) // a number: it cannot fail
	}
}
