package proctest

import (
	"fmt"
	"testing"
	"time"
)

// Patience bounds the waits for a state. It is long because every step is slow on a busy machine; it only
// ends a test that hangs.
const Patience = 3 * time.Minute

// Eventually waits until ok returns true, and fails the test after Patience. The message is optional: a
// format and its arguments. An argument of type func() any is called after the wait, to show the last state.
func Eventually(tb testing.TB, ok func() bool, msgAndArgs ...any) {
	tb.Helper()
	if !Poll(Patience, ok) {
		tb.Fatalf("still not true after %s: %s", Patience, message(msgAndArgs))
	}
}

// Never fails the test if ok returns true within d.
func Never(tb testing.TB, d time.Duration, ok func() bool, msgAndArgs ...any) {
	tb.Helper()
	if Poll(d, ok) {
		tb.Fatalf("became true within %s: %s", d, message(msgAndArgs))
	}
}

// Receive waits until c has a value or is closed, and fails the test after Patience.
func Receive[T any](tb testing.TB, c <-chan T, msgAndArgs ...any) (v T) {
	tb.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case v = <-c:
	case <-timer.C:
		tb.Fatalf("nothing received within %s: %s", Patience, message(msgAndArgs))
	}
	return v
}

// Poll reports whether ok returns true within d. It calls ok at once, then after pauses that grow from 1 ms
// to 25 ms, and once more at the end.
func Poll(d time.Duration, ok func() bool) bool {
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	for pause := time.Millisecond; !ok(); pause = min(2*pause, 25*time.Millisecond) {
		next := time.NewTimer(pause)
		select {
		case <-deadline.C:
			next.Stop()
			return ok()
		case <-next.C:
		}
	}
	return true
}

// Pass waits for d. It is for tests whose subject is a duration, such as an outage.
func Pass(d time.Duration) {
	Poll(d, func() bool { return false })
}

func message(msgAndArgs []any) string {
	for i, a := range msgAndArgs {
		if f, ok := a.(func() any); ok {
			msgAndArgs[i] = f()
		}
	}
	switch len(msgAndArgs) {
	case 0:
		return "(no message)"
	case 1:
		return fmt.Sprint(msgAndArgs[0])
	}
	return fmt.Sprintf(fmt.Sprint(msgAndArgs[0]), msgAndArgs[1:]...)
}
