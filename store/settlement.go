package store

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"reprise/tasks"
)

// Call is one call to AudD with its result and cost.
type Call struct {
	// AttemptID identifies the call; recording it again changes nothing.
	AttemptID  string
	Key        string
	Generation int64
	Source     string
	Path       tasks.Path
	Outcome    tasks.Outcome
	Verdict    tasks.Verdict
	Code       int // AudD's error code, 0 = none
	HTTPStatus int // 0 = no answer
	RequestID  string
	Phase      string // unsent, sent, answered; "" = unknown
	Latency    time.Duration
	Units      int64
	UnitBasis  string // measured, estimated, unavailable; "" = none
	// PossiblyBilled marks a call whose bill is not certain.
	PossiblyBilled bool
	// Price is what one unit costs and Cost what the call cost; nil = unknown.
	Price, Cost *float64
	Reason      string
	// At is when the call ended; kept to the millisecond.
	At time.Time
}

// Settlement is the effect of one attempt, or of a decision without a call, on a
// task. encoding/json reads back exactly what it wrote, for the outbox.
type Settlement struct {
	Key        string
	Generation int64
	Path       tasks.Path
	// Queue and Payload fill the task row when the store does not know the key.
	Queue   string
	Payload []byte
	// Call is nil when no call was made.
	Call *Call
	// AttemptID is the attempt that the verdict is about if Call is nil: a certain
	// verdict of the same attempt replaces a presumption.
	AttemptID string `json:",omitempty"`
	// Finished means that the verdict is done, archive or hold. Otherwise it is
	// retry, snooze, or "" to leave the task row unchanged.
	Finished bool
	Verdict  tasks.Verdict
	Outcome  tasks.Outcome
	Reason   string
	// Final makes an archived task a tombstone: only force opens it again.
	Final  bool
	Result json.RawMessage
	// At is when the decision was made; kept to the millisecond. Of two
	// decisions that do not finish the task, the later one shows.
	At time.Time
}

var finishing = []tasks.Verdict{tasks.Done, tasks.Archive, tasks.Hold}

// Validate reports contradicting fields. Its error
// wraps ErrInvalid and quotes neither payload nor result.
func (st Settlement) Validate() error {
	wrong := func(what string) error { return fmt.Errorf("settlement of %q: %s: %w", st.Key, what, ErrInvalid) }
	switch {
	case st.Key == "":
		return wrong("no key")
	case st.Path == "":
		return wrong("no path")
	case st.Generation < 0:
		return wrong("negative generation")
	case st.At.IsZero():
		return wrong("no time")
	case st.Call != nil && st.AttemptID != "":
		return wrong("has both an attempt id and a call")
	case st.Finished && !slices.Contains(finishing, st.Verdict):
		return wrong(fmt.Sprintf("finished with verdict %q", st.Verdict))
	case !st.Finished && slices.Contains(finishing, st.Verdict):
		return wrong(fmt.Sprintf("verdict %q but not finished", st.Verdict))
	case st.Final && st.Verdict != tasks.Archive:
		return wrong("final without verdict archive")
	case st.Result != nil && !json.Valid(st.Result):
		return wrong("result is not JSON")
	}
	if st.Call == nil {
		return nil
	}
	return st.Call.validate(st.Key)
}

func (c Call) validate(key string) error {
	wrong := func(what string) error {
		return fmt.Errorf("call %q of %q: %s: %w", c.AttemptID, key, what, ErrInvalid)
	}
	switch {
	case c.AttemptID == "":
		return wrong("no attempt id")
	case c.Key != key:
		return wrong("belongs to another key")
	case c.At.IsZero():
		return wrong("no time")
	case c.Units < 0 || c.Latency < 0:
		return wrong("negative units or latency")
	case !finite(c.Price) || !finite(c.Cost):
		return wrong("price or cost is not a number")
	}
	return nil
}

func finite(v *float64) bool { return v == nil || !math.IsNaN(*v) && !math.IsInf(*v, 0) }
