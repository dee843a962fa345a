package redistest

import "go.uber.org/goleak"

// IgnoreRedial makes goleak ignore the goroutine in which a pool of go-redis redials every second after many
// failed dials. It may end a second after its client was closed, and goleak waits for less than that.
//
//	goleak.VerifyTestMain(redistest.Wrap(m), redistest.IgnoreRedial())
func IgnoreRedial() goleak.Option {
	return goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")
}
