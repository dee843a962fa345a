// Package redistest gives tests a real redis-server.
//
// One server per test binary is started by the first test that asks (DB,
// Addr) and ended by Main or Wrap; without either the kernel ends it with the
// binary. Each test gets a logical database of its own. Two things are not
// separated by databases: pub/sub (asynq's cancel channel reaches every test
// of the binary that uses the same task id) and server settings. Tests that
// restart, freeze or configure Redis use NewServer.
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.Wrap(m)) }
//	func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }
//
// NewProxy puts a fault-injecting TCP proxy before a Redis or HTTP server.
// AgeLeases and AgeRetries spare tests the waiting that asynq would need.
package redistest
