// Package proctest runs real processes in tests and waits for states.
//
// Build builds commands of this module once per test binary, with the race detector when the tests have it.
// Start runs a command that Build built, Launch any other command. A process is killed when its test ends or,
// on Linux, when the test binary ends. A failed test shows the output of its processes. A process that
// reports a data race fails the test.
//
// Eventually and Never wait for states instead of sleeping.
//
//	func TestMain(m *testing.M) {
//		proctest.AtOnce(12)
//		goleak.VerifyTestMain(proctest.Build(redistest.Wrap(m), "worker", "enqueue"))
//	}
package proctest
