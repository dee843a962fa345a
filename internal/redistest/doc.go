// Package redistest runs a real redis-server in tests.
//
// DB uses one server per test binary. The first call starts it, Wrap ends it. Each test gets a logical
// database of its own; pub/sub and server settings are shared, so asynq's cancel messages reach every test of
// the binary with the same task id. Tests that restart, freeze or configure Redis use NewServer.
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.Wrap(m)) }
//
// NewProxy starts a fault-injecting TCP proxy in front of a Redis or HTTP server. ExpireLeases and AgeRetries
// replace waits for asynq's timeouts.
package redistest
