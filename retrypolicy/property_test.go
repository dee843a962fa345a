package retrypolicy

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"reprise/audd"
	"reprise/tasks"
)

// enum reads the error codes listed in AudD's OpenAPI file.
func enum(t testing.TB) []int {
	t.Helper()
	raw, err := os.ReadFile("../audd/testdata/openapi.yaml")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(raw), "error_code:")
	require.True(t, found)
	list := regexp.MustCompile(`enum: \[([0-9, ]+)\]`).FindStringSubmatch(rest)
	require.Len(t, list, 2)
	var out []int
	for word := range strings.SplitSeq(list[1], ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		require.NoError(t, err)
		out = append(out, n)
	}
	require.GreaterOrEqual(t, len(out), 27)
	return out
}

func TestClassifyHasAnOutcomeForEveryStatusAndCode(t *testing.T) {
	t.Parallel()
	withoutMeaning := map[int]bool{40: true, 610: true}
	numbers := append(enum(t), 0, 501, -1, 2, 999, 4242, 1<<31)
	for _, n := range numbers {
		for http := 100; http <= 599; http++ {
			for _, path := range tasks.Paths {
				e := &audd.Error{Kind: audd.KindHTTP, Phase: audd.PhaseAnswered, Code: n, HTTPStatus: http}
				if n != 0 {
					e.Kind, e.JSON = audd.KindCode, true
				}
				c := Classify(CallResult{Path: path, InputKind: tasks.FileInput, Err: e})
				if !slices.Contains(tasks.Outcomes, c.Outcome) || c.Outcome == tasks.Match || c.Outcome == tasks.NoMatch || c.Outcome == tasks.Uploaded {
					t.Fatalf("code %d, HTTP %d: outcome %q", n, http, c.Outcome)
				}
				if n != 0 && c.Outcome != ofCode(n, "", CallResult{Path: path}) {
					t.Fatalf("code %d, HTTP %d: the status changed the outcome to %s", n, http, c.Outcome)
				}
				if !strings.HasPrefix(c.Reason, string(c.Outcome)) {
					t.Fatalf("code %d, HTTP %d: reason %q", n, http, c.Reason)
				}
			}
		}
	}
	for _, n := range enum(t) {
		got := Classify(CallResult{Path: tasks.Recognize, Err: code(n, "")}).Outcome
		assert.Equal(t, withoutMeaning[n], got == tasks.Unknown, "code %d of AudD's list is %s", n, got)
	}
}

func drawClassified(t *rapid.T) Classified {
	return Classified{
		Outcome:    rapid.SampledFrom(append([]tasks.Outcome{"", "garbage"}, tasks.Outcomes...)).Draw(t, "outcome"),
		RetryAfter: time.Duration(rapid.OneOf(rapid.Int64Range(0, int64(48*time.Hour)), rapid.Int64()).Draw(t, "retry_after")),
		Code:       rapid.SampledFrom([]int{0, 0, 600, 611, 902, 40}).Draw(t, "code"),
		HTTPStatus: rapid.IntRange(0, 599).Draw(t, "status"),
		Phase:      rapid.SampledFrom([]audd.Phase{"", audd.PhaseUnsent, audd.PhaseSent, audd.PhaseAnswered}).Draw(t, "phase"),
		Latency:    time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "latency")),
		Reason:     rapid.String().Draw(t, "reason"),
	}
}

func drawRecord(t *rapid.T) tasks.AttemptRecord {
	return tasks.AttemptRecord{
		Counted:        rapid.IntRange(0, 7).Draw(t, "counted"),
		PossiblyBilled: rapid.IntRange(0, 4).Draw(t, "billed"),
		Streak:         rapid.IntRange(-1, 70).Draw(t, "streak"),
		SameOutcome:    rapid.IntRange(-1, 6).Draw(t, "same"),
		LastOutcome:    rapid.SampledFrom(append([]tasks.Outcome{""}, tasks.Outcomes...)).Draw(t, "last"),
		Throttles:      rapid.IntRange(-1, 70).Draw(t, "throttles"),
		Spent:          time.Duration(rapid.Int64Range(0, int64(30*time.Hour)).Draw(t, "spent")),
	}
}

func TestDecideKeepsItsInvariants(t *testing.T) {
	t.Parallel()
	p := Default()
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SampledFrom(tasks.Paths).Draw(t, "path")
		c, r := drawClassified(t), drawRecord(t)
		random := rapid.Float64().Draw(t, "random")
		d := p.Decide(path, c, r, random)
		again := p.Decide(path, c, r, random)
		check := func(ok bool, invariant string) {
			if !ok {
				t.Fatalf("%s\n%s %+v\n%+v\n%+v", invariant, path, c, r, d)
			}
		}
		check(d == again, "the same arguments give the same decision")
		check(d.Delay >= 0 && d.Delay <= maxSnooze, "a wait is bounded")
		check(d.BlockFor >= 0 && d.BlockFor <= maxBlock, "a block is bounded")
		check(d.Backoff == 0 || d.Backoff == d.Delay, "own time is the wait or 0")
		returns := d.Verdict == tasks.Retry || d.Verdict == tasks.Snooze
		check(returns || d.Delay == 0, "only a retry or snooze waits")
		if returns && d.Outcome != tasks.Interrupted && d.Outcome != tasks.InputUnreachable {
			check(d.Delay >= min(c.RetryAfter, maxSnooze), "never earlier than asked")
		}
		if d.Verdict == tasks.Retry {
			check(d.Counted, "a retry is counted")
			check(r.Spent+c.Latency < p.GiveUpAfter, "no retry after the give-up time")
			if c.Outcome != tasks.Crash {
				check(r.Counted+1 < p.MaxAttempts, "no retry after max_attempts")
				check(r.PossiblyBilled+charge(d.PossiblyBilled) < p.MaxPossiblyBilled, "no retry after max_possibly_billed")
			}
		}
		if d.Verdict == tasks.Snooze {
			check(!d.Counted && !d.PossiblyBilled, "a snooze is never counted")
		}
		if path == tasks.Upload {
			check(!d.PossiblyBilled || d.Verdict == tasks.Hold, "an upload that may have been billed is held")
			check(!d.TryOther, "an upload never changes source")
			check(d.Verdict != tasks.Done || d.Latch == tasks.LatchSettled, "a done upload is settled")
		} else {
			check(d.Verdict != tasks.Hold && d.Latch == tasks.LatchUntouched, "only uploads have a latch")
		}
		check(!d.Final || d.Verdict == tasks.Archive, "only an archive is final")
		assertReason(t, d.Outcome, d.Reason)
	})
}

func TestMoreChargesNeverUndoAnArchive(t *testing.T) {
	t.Parallel()
	p := Default()
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SampledFrom(tasks.Paths).Draw(t, "path")
		c, r := drawClassified(t), drawRecord(t)
		more := r
		more.Counted += rapid.IntRange(0, 3).Draw(t, "more counted")
		more.PossiblyBilled += rapid.IntRange(0, 3).Draw(t, "more billed")
		more.Spent += time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "more spent"))
		less, worse := p.Decide(path, c, r, 0.5), p.Decide(path, c, more, 0.5)
		if less.Verdict == tasks.Archive && worse.Verdict != tasks.Archive {
			t.Fatalf("%+v archives, %+v does not", r, more)
		}
		if less.Verdict == tasks.Hold && worse.Verdict != tasks.Hold {
			t.Fatalf("charges changed a hold into %s", worse.Verdict)
		}
	})
}

func TestTaskThatAlwaysFailsEnds(t *testing.T) {
	t.Parallel()
	p := Default()
	bad := []error{
		status(503, false), network(audd.PhaseSent, errors.New("EOF")), network(audd.PhaseUnsent, errors.New("refused")),
		local(audd.PhaseUnsent, os.ErrNotExist), code(600, ""), status(200, false), code(100, ""), status(429, false),
	}
	rapid.Check(t, func(t *rapid.T) {
		var r tasks.AttemptRecord
		var billed int
		for range 100_000 {
			err := rapid.SampledFrom(bad).Draw(t, "err")
			c := Classify(CallResult{Path: tasks.Recognize, InputKind: tasks.URLInput, Err: err})
			d := p.Decide(tasks.Recognize, c, r, 0.5)
			billed += charge(d.PossiblyBilled)
			if d.Verdict == tasks.Archive {
				if billed > p.MaxPossiblyBilled || r.Counted >= p.MaxAttempts {
					t.Fatalf("ended with %d billed, %+v", billed, r)
				}
				return
			}
			r = after(r, d)
		}
		t.Fatalf("never ends: %+v", r)
	})
}

// after returns the record after the attempt is settled.
func after(r tasks.AttemptRecord, d Decision) tasks.AttemptRecord {
	r.Counted += charge(d.Counted)
	r.PossiblyBilled += charge(d.PossiblyBilled)
	r.Spent += d.Backoff
	if d.Counted {
		r.Streak++
	}
	if d.Outcome == tasks.Throttled {
		r.Throttles++
	} else {
		r.Throttles = 0
	}
	if r.LastOutcome != d.Outcome {
		r.SameOutcome = 0
	}
	r.SameOutcome++
	r.LastOutcome = d.Outcome
	return r
}
