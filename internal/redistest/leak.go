package redistest

import "go.uber.org/goleak"

// IgnoreRedial is for test binaries that cut go-redis off: after many failed
// dials a pool goroutine tries again every second, and notices up to a second
// late that its client was closed. goleak waits less than that.
//
//	goleak.VerifyTestMain(redistest.Wrap(m), redistest.IgnoreRedial())
func IgnoreRedial() goleak.Option {
	return goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")
}
