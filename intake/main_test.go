package intake

import (
	"testing"

	"go.uber.org/goleak"

	"reprise/internal/redisconn"
	"reprise/internal/redistest"
)

func TestMain(m *testing.M) {
	redisconn.SetLogger(nil)
	// go-redis's pool notices its Close at the end of a one-second sleep.
	goleak.VerifyTestMain(redistest.Wrap(m), goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}
