// Package proctest gives tests real processes.
//
// Build builds commands of ours once per test binary, with the race detector
// when the tests have it. Start runs one of them, Launch any other command; it
// ends with its test or, if the test binary is killed, by the kernel's death
// signal (Linux). When a test fails it shows what its processes printed, and a
// data race that one of them reported fails it. Nothing is left for goleak to
// find once a process has ended.
//
//	func TestMain(m *testing.M) {
//		proctest.AtOnce(12)
//		goleak.VerifyTestMain(proctest.Build(redistest.Wrap(m), "worker", "enqueue"))
//	}
package proctest
