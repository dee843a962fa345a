package retrypolicy_test

import (
	"fmt"
	"time"

	"reprise/audd"
	"reprise/retrypolicy"
	"reprise/tasks"
)

// An HTTP 429 with Retry-After: 30 is not billed and not counted. The task
// waits for 30 s plus jitter, and no other task uses the source in that time.
func ExamplePolicy_Decide() {
	err := &audd.Error{
		Op: "recognize", Kind: audd.KindHTTP, Phase: audd.PhaseAnswered,
		HTTPStatus: 429, RetryAfter: 30 * time.Second,
	}
	c := retrypolicy.Classify(retrypolicy.CallResult{Path: tasks.Recognize, Err: err})
	fmt.Println(c.Outcome, "-", c.Reason)

	d := retrypolicy.Default().Decide(tasks.Recognize, c, tasks.AttemptRecord{}, 0.5)
	fmt.Println(d.Verdict, "for", d.Delay)
	fmt.Println("block source and path for", d.BlockFor)
	fmt.Println("counted:", d.Counted, "possibly billed:", d.PossiblyBilled)
	// Output:
	// throttled - throttled: HTTP 429
	// snooze for 33.75s
	// block source and path for 30s
	// counted: false possibly billed: false
}

// An upload whose answer was lost may have arrived, so it is not retried.
func ExampleClassify() {
	err := &audd.Error{Op: "upload", Kind: audd.KindHTTP, Phase: audd.PhaseAnswered, HTTPStatus: 502}
	c := retrypolicy.Classify(retrypolicy.CallResult{Path: tasks.Upload, Err: err})
	d := retrypolicy.Default().Decide(tasks.Upload, c, tasks.AttemptRecord{}, 0.5)
	fmt.Println(c.Outcome, d.Verdict, d.Latch)
	// Output:
	// unavailable hold uncertain
}

// The middle of the jitter is printed; each wait varies by 50 %.
func ExamplePolicy_Backoff() {
	p := retrypolicy.Default()
	for n := 1; n <= 9; n++ {
		fmt.Println(n, p.Backoff(n, 0.5))
	}
	// Output:
	// 1 2s
	// 2 4s
	// 3 8s
	// 4 16s
	// 5 32s
	// 6 1m4s
	// 7 2m8s
	// 8 4m16s
	// 9 5m0s
}
