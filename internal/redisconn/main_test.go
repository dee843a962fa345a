package redisconn

import (
	"testing"

	"go.uber.org/goleak"

	"reprise/internal/redistest"
)

func TestMain(m *testing.M) {
	SetLogger(nil)
	// The pool of go-redis notices its Close only after a sleep of one second.
	goleak.VerifyTestMain(redistest.Wrap(m), goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}
