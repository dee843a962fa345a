package redistest

import "go.uber.org/goleak"

// IgnoreRedial is for test binaries that cut connections of go-redis: after many
// failed dials a goroutine of the pool redials every second, and ends up to a
// second after its client was closed. goleak waits for less than that.
//
//	goleak.VerifyTestMain(redistest.Wrap(m), redistest.IgnoreRedial())
func IgnoreRedial() goleak.Option {
	return goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")
}
