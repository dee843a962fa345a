package retrypolicy

import (
	"errors"
	"slices"
	"testing"
	"time"

	"reprise/audd"
	"reprise/tasks"
)

// FuzzClassify checks that every message, code and status has a known outcome and
// a well-formed reason, also after a decision.
func FuzzClassify(f *testing.F) {
	f.Add("Recognition failed", 300, 200, "code", "answered", true, int64(0))
	f.Add("expired or deleted", 600, 200, "code", "answered", false, int64(0))
	f.Add("\xff\x00https://h/?sig=1\n", 0, 503, "http", "answered", false, int64(3e9))
	f.Add("EOF", 0, 0, "transport", "sent", false, int64(-1))
	f.Add("no such file", 0, 0, "local", "unsent", false, int64(0))
	f.Fuzz(func(t *testing.T, message string, code, status int, kind, phase string, signed bool, asked int64) {
		e := &audd.Error{
			Kind: audd.Kind(kind), Phase: audd.Phase(phase), Code: code, HTTPStatus: status,
			Message: message, RetryAfter: time.Duration(asked), Err: errors.New(message),
		}
		for _, path := range tasks.Paths {
			for _, err := range []error{e, errors.New(message)} {
				c := Classify(CallResult{Path: path, InputKind: tasks.URLInput, URLSigned: signed, Err: err})
				if !slices.Contains(tasks.Outcomes, c.Outcome) {
					t.Fatalf("outcome %q", c.Outcome)
				}
				assertReason(t, c.Outcome, c.Reason)
				d := Default().Decide(path, c, tasks.AttemptRecord{Counted: 4, PossiblyBilled: 2}, 0.5)
				assertReason(t, d.Outcome, d.Reason)
			}
		}
	})
}
