// Package proctest runs real processes in tests and waits for states.
//
// Build builds commands of this module once per test binary, with the race
// detector when the tests have it. Start runs one of them, Launch any other
// command. A process is killed when its test ends or, on Linux, when the test
// binary dies. When a test fails, the output of its processes is shown; a data
// race that a process reports fails the test.
//
// Eventually and Never wait for states; no test sleeps.
//
//	func TestMain(m *testing.M) {
//		proctest.AtOnce(12)
//		goleak.VerifyTestMain(proctest.Build(redistest.Wrap(m), "worker", "enqueue"))
//	}
package proctest
