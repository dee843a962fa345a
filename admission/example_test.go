package admission_test

import (
	"errors"
	"fmt"
	"time"

	"reprise/admission"
	"reprise/tasks"
)

// Validate names every invalid field and every pair of fields that contradict each other.
func ExampleConfig_Validate() {
	cfg := admission.DefaultConfig()
	cfg.Paths = map[tasks.Path]admission.Limits{tasks.Recognize: {Concurrency: 30, RequestBurst: 5}}
	cfg.Global.Concurrency = 20
	cfg.Groups = map[string]admission.Group{"archive": {Ceiling: 1.5}}
	cfg.MonthAnchor = 31
	fmt.Println(cfg.Validate())
	// Output:
	// limits.recognize.request_burst 5 without limits.recognize.requests_per_minute: set the rate too
	// limits.recognize.concurrency 30 is more than limits.global.concurrency 20: the rest could never be used
	// groups.archive.ceiling 1.5 must be 0 (no ceiling) to 1
	// month_anchor 31 must be 1 to 28
}

// A refusal is an error with the refusing gate and the wait before the next acquire.
func ExampleRefusal() {
	var err error = &admission.Refusal{Gate: admission.GateRequests, Source: "main", RetryAfter: 1500 * time.Millisecond}
	if refusal, ok := errors.AsType[*admission.Refusal](err); ok {
		fmt.Println(refusal.Gate, refusal.RetryAfter, refusal.AllBlocked)
	}
	fmt.Println(err)
	// Output:
	// requests 1.5s false
	// refused by gate requests of source "main" for 1.5s
}

// AllBlocked returns the gate and the wait of the source that reopens first. It returns false if a source is only
// busy.
func ExampleAllBlocked() {
	sources := []admission.SourceCheck{
		{Source: "main", Gate: admission.GateHalt, Wait: time.Hour, Blocked: true},
		{Source: "spare", Gate: admission.GateThrottle, Wait: time.Minute, Blocked: true},
	}
	fmt.Println(admission.AllBlocked(sources))
	sources[1] = admission.SourceCheck{Source: "spare", Gate: admission.GateConcurrency, Wait: time.Second} // busy, not blocked
	_, _, blocked := admission.AllBlocked(sources)
	fmt.Println(blocked)
	// Output:
	// throttle 1m0s true
	// false
}
