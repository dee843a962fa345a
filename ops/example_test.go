package ops_test

import (
	"fmt"
	"time"

	"reprise/admission"
	"reprise/internal/queue"
	"reprise/internal/text"
	"reprise/ops"
	"reprise/store"
	"reprise/tasks"
)

// A task waits because its only account is halted.
func ExampleExplain() {
	now := time.Date(2026, 11, 30, 14, 0, 0, 0, time.UTC)
	evidence := ops.Evidence{
		Key: "recognize_3q", Queue: "recognize", State: queue.Pending, Ahead: 41_200, Workers: 2, Status: store.TaskStatus{Known: true},
		Gates: admission.TaskState{Path: tasks.Recognize, State: admission.State{Sources: []admission.SourceState{{
			Source: "main", Path: tasks.Recognize, Halt: string(tasks.Quota), HaltBy: "worker-3",
			HaltSince: now.Add(-2 * time.Minute), ProbeAt: now.Add(58 * time.Minute),
		}}}},
	}
	cause := ops.Explain(evidence, text.Times{Zone: time.UTC, Now: now})
	fmt.Println(cause.State)
	fmt.Println("because:", cause.Because)
	fmt.Println("starts about", cause.Starts.Format(time.TimeOnly))
	fmt.Println("to do:", cause.ToDo[0])
	// Output:
	// WAITING
	// because: source main is HALTED quota by worker-3 since 13:58:00; 41,200 tasks are ahead of it
	// starts about 14:58:00
	// to do: raise the account's quota, then inspect resume main/recognize
}

// The price of some calls was unknown when they were made.
func ExampleNewCostReport() {
	known := 6.0
	report := ops.NewCostReport(ops.ByPath, []store.CallSum{
		{Of: "recognize", Calls: 1200, Units: 1200, Cost: &known},
		{Of: "enterprise", Calls: 2, Units: 600, UnpricedCalls: 2, UnpricedUnits: 600, EstimatedUnits: 300},
	}, 0)
	for _, row := range append(report.Rows, report.Total) {
		fmt.Printf("%s: %s units, %s\n", row.Of, text.Thousands(row.Units), row.Sentence())
	}
	for _, gap := range report.Gaps {
		fmt.Println("unknown:", gap)
	}
	// Output:
	// enterprise: 600 units, price unknown (--price-per-1000)
	// recognize: 1,200 units, $6.00
	// total: 1,800 units, $6.00 and 600 units of unknown price (--price-per-1000)
	// unknown: the price of 600 units in 2 calls
	// unknown: AudD's own count for 300 units, which are estimated
}
