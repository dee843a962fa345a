package store

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"reprise/tasks"
)

// Call is one call to AudD with its outcome and cost.
type Call struct {
	// AttemptID identifies the call. Recording the same call again changes nothing.
	AttemptID  string
	Key        string
	Generation int64
	Source     string
	Path       tasks.Path
	Outcome    tasks.Outcome
	Verdict    tasks.Verdict
	Code       int // AudD's error code; 0 = none
	HTTPStatus int // 0 = no response
	RequestID  string
	Phase      string // unsent, sent, answered; "" = unknown
	Latency    time.Duration
	Units      int64
	UnitBasis  string // measured, estimated, unavailable; "" = none
	// PossiblyBilled marks a call that AudD may have billed without confirming it.
	PossiblyBilled bool
	// Price is the price per unit. Cost is the price of the whole call. nil = unknown.
	Price, Cost *float64
	Reason      string
	// At is when the call ended, with millisecond precision.
	At time.Time
}

// Settlement describes how one attempt, or a decision without a call, changes a task. Its JSON form preserves every
// field exactly.
type Settlement struct {
	Key        string
	Generation int64
	Path       tasks.Path
	// Queue and Payload are stored only if the key is unknown. Queue "" means the path's queue.
	Queue   string
	Payload []byte
	// Call is nil if no call was made.
	Call *Call
	// AttemptID is the attempt that the verdict is about. It must be "" if Call is set, because Call has its own
	// AttemptID.
	AttemptID string `json:",omitempty"`
	// Finished is true for the verdicts done, archive and hold. It is false for retry and snooze. It is also false for
	// "", which records a call and keeps the task's status.
	Finished bool
	Verdict  tasks.Verdict
	Outcome  tasks.Outcome
	Reason   string
	// Final makes an archived task a tombstone: only force reopens the task.
	Final bool
	// Result is JSON; nil = none. It is a byte slice because encoding/json would reformat a json.RawMessage.
	Result []byte
	// At is when the decision was made, with millisecond precision. An unfinished task shows its latest decision.
	At time.Time
}

var finishing = []tasks.Verdict{tasks.Done, tasks.Archive, tasks.Hold}

// validate returns an error if fields are missing or contradict each other. The error wraps ErrInvalid and quotes
// neither payload nor result.
func (st Settlement) validate() error {
	wrong := func(what string) error { return fmt.Errorf("settlement of %q: %s: %w", st.Key, what, ErrInvalid) }
	finishes := slices.Contains(finishing, st.Verdict)
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
	case st.Finished && !finishes:
		return wrong(fmt.Sprintf("finished with verdict %q", st.Verdict))
	case !st.Finished && finishes:
		return wrong(fmt.Sprintf("verdict %q but not finished", st.Verdict))
	case st.Final && st.Verdict != tasks.Archive:
		return wrong("final without verdict archive")
	case st.Result != nil && !json.Valid(st.Result):
		return wrong("result is not JSON")
	}
	if c := st.Call; c != nil {
		switch {
		case c.AttemptID == "":
			return wrong("call without attempt id")
		case c.Key != st.Key:
			return wrong("call belongs to another key")
		case c.Path == "":
			return wrong("call without path")
		case c.At.IsZero():
			return wrong("call without time")
		case c.Units < 0 || c.Latency < 0:
			return wrong("call with negative units or latency")
		case !finite(c.Price) || !finite(c.Cost):
			return wrong("call with a price or cost that is not a finite number")
		}
	}
	return nil
}

func finite(v *float64) bool { return v == nil || !math.IsNaN(*v) && !math.IsInf(*v, 0) }

// settlementVersion is the version of the JSON form that this build writes. This build reads all versions up to
// settlementVersion.
const settlementVersion = 1

// plainSettlement has Settlement's fields without its methods.
type plainSettlement Settlement

// wireSettlement is the JSON form of a settlement.
type wireSettlement struct {
	Version int `json:"v"`
	plainSettlement
}

// MarshalJSON returns the settlement's JSON form, which includes its version.
func (st Settlement) MarshalJSON() ([]byte, error) {
	encoded, err := json.Marshal(wireSettlement{Version: settlementVersion, plainSettlement: plainSettlement(st)})
	if err != nil {
		return nil, fmt.Errorf("encode settlement of %q: %w", st.Key, err)
	}
	return encoded, nil
}

// UnmarshalJSON reads the output of MarshalJSON. It fails if a newer build wrote it.
func (st *Settlement) UnmarshalJSON(encoded []byte) error {
	var w wireSettlement
	if err := json.Unmarshal(encoded, &w); err != nil {
		return fmt.Errorf("decode settlement: %w", err)
	}
	if w.Version < 1 || w.Version > settlementVersion {
		return fmt.Errorf("decode settlement: version %d, this build reads 1 to %d", w.Version, settlementVersion)
	}
	*st = Settlement(w.plainSettlement)
	return nil
}
