package retrypolicy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"

	"reprise/audd"
	"reprise/tasks"
)

// effects is the part of a Decision that comes from the table.
type effects struct {
	Verdict         tasks.Verdict
	Delay           time.Duration // with random 0
	Counted, Billed bool
	Channel         tasks.Channel
	Halt            tasks.HaltScope
	TryOther        bool
	Final           bool
	UnitsKept       bool
	Latch           tasks.LatchEffect
}

func effectsOf(d Decision) effects {
	return effects{d.Verdict, d.Delay, d.Counted, d.PossiblyBilled, d.Channel, d.Halt, d.TryOther, d.Final, d.UnitsKept, d.Latch}
}

func TestDecideFollowsTheTable(t *testing.T) {
	t.Parallel()
	type change func(*effects) // how an upload differs
	for name, tc := range map[string]struct {
		c         Classified
		recognize effects
		upload    change
	}{
		"match is done and billed": {Classified{Outcome: tasks.Match},
			effects{Verdict: tasks.Done, Channel: tasks.ChannelSuccess, UnitsKept: true}, func(w *effects) { w.Latch = tasks.LatchSettled }},
		"no_match is done and billed": {Classified{Outcome: tasks.NoMatch},
			effects{Verdict: tasks.Done, Channel: tasks.ChannelSuccess, UnitsKept: true}, func(w *effects) { w.Latch = tasks.LatchSettled }},
		"uploaded is done and billed": {Classified{Outcome: tasks.Uploaded},
			effects{Verdict: tasks.Done, Channel: tasks.ChannelSuccess, UnitsKept: true}, func(w *effects) { w.Latch = tasks.LatchSettled }},
		"not_released is done": {Classified{Outcome: tasks.NotReleased, Code: 907},
			effects{Verdict: tasks.Done, Channel: tasks.ChannelSuccess, UnitsKept: true}, func(w *effects) { w.Verdict = tasks.Archive; w.Latch = tasks.LatchRejected }},
		"throttled is snoozed, refunded and not counted": {Classified{Outcome: tasks.Throttled, HTTPStatus: 429},
			effects{Verdict: tasks.Snooze, Delay: 2 * time.Second, Channel: tasks.ChannelExcluded}, func(w *effects) { w.Latch = tasks.LatchReleased }},
		"unavailable_unsent is retried and refunded, also an upload": {Classified{Outcome: tasks.UnavailableUnsent, Phase: audd.PhaseUnsent},
			effects{Verdict: tasks.Retry, Delay: time.Second, Counted: true, Channel: tasks.ChannelFailure}, func(w *effects) { w.Latch = tasks.LatchReleased }},
		"unavailable is retried, an upload held": {Classified{Outcome: tasks.Unavailable, HTTPStatus: 503},
			effects{Verdict: tasks.Retry, Delay: time.Second, Counted: true, Billed: true, Channel: tasks.ChannelFailure, UnitsKept: true},
			func(w *effects) { w.Verdict = tasks.Hold; w.Delay = 0; w.Latch = tasks.LatchUncertain }},
		"ambiguous is retried, an upload held": {Classified{Outcome: tasks.Ambiguous, Phase: audd.PhaseSent},
			effects{Verdict: tasks.Retry, Delay: time.Second, Counted: true, Billed: true, Channel: tasks.ChannelFailure, UnitsKept: true},
			func(w *effects) { w.Verdict = tasks.Hold; w.Delay = 0; w.Latch = tasks.LatchUncertain }},
		"invalid_audio is final": {Classified{Outcome: tasks.InvalidAudio, Code: 300},
			effects{Verdict: tasks.Archive, Channel: tasks.ChannelSuccess, Final: true, UnitsKept: true}, func(w *effects) { w.Latch = tasks.LatchRejected }},
		"invalid_request from AudD is final and charged": {Classified{Outcome: tasks.InvalidRequest, Code: 700},
			effects{Verdict: tasks.Archive, Channel: tasks.ChannelSuccess, Final: true, UnitsKept: true}, func(w *effects) { w.Latch = tasks.LatchRejected }},
		"invalid_request from a proxy is final and refunded": {Classified{Outcome: tasks.InvalidRequest, HTTPStatus: 413},
			effects{Verdict: tasks.Archive, Channel: tasks.ChannelSuccess, Final: true}, func(w *effects) { w.Latch = tasks.LatchRejected }},
		"input_unreachable is first retried after a minute": {Classified{Outcome: tasks.InputUnreachable, Code: 600},
			effects{Verdict: tasks.Retry, Delay: time.Minute, Counted: true, Channel: tasks.ChannelSuccess, UnitsKept: true}, func(w *effects) { w.Latch = tasks.LatchReleased }},
		"input_gone is final": {Classified{Outcome: tasks.InputGone, Code: 501},
			effects{Verdict: tasks.Archive, Channel: tasks.ChannelExcluded, Final: true, UnitsKept: true}, func(w *effects) { w.Latch = tasks.LatchRejected }},
		"input_missing is retried": {Classified{Outcome: tasks.InputMissing},
			effects{Verdict: tasks.Retry, Delay: time.Second, Counted: true, Channel: tasks.ChannelExcluded}, func(w *effects) { w.Latch = tasks.LatchReleased }},
		"input_changed is archived, replayable": {Classified{Outcome: tasks.InputChanged},
			effects{Verdict: tasks.Archive, Channel: tasks.ChannelExcluded}, func(w *effects) { w.Latch = tasks.LatchReleased }},
		"link_expired is archived, replayable": {Classified{Outcome: tasks.LinkExpired},
			effects{Verdict: tasks.Archive, Channel: tasks.ChannelNone}, func(w *effects) { w.Latch = tasks.LatchReleased }},
		"not_found is archived, replayable; five halt": {Classified{Outcome: tasks.NotFound, HTTPStatus: 404},
			effects{Verdict: tasks.Archive, Channel: tasks.ChannelExcluded}, func(w *effects) { w.Latch = tasks.LatchReleased }},
		"authentication tries another source, else archives; three halt": {Classified{Outcome: tasks.Authentication, Code: 900},
			effects{Verdict: tasks.Archive, Channel: tasks.ChannelAccount, TryOther: true}, func(w *effects) { w.TryOther = false; w.Latch = tasks.LatchReleased }},
		"quota under wait halts the path and snoozes": {Classified{Outcome: tasks.Quota, Code: 902},
			effects{Verdict: tasks.Snooze, Delay: time.Minute, Channel: tasks.ChannelAccount, Halt: tasks.HaltPath, TryOther: true}, func(w *effects) { w.TryOther = false; w.Latch = tasks.LatchReleased }},
		"subscription halts the path and archives": {Classified{Outcome: tasks.Subscription, Code: 904},
			effects{Verdict: tasks.Archive, Channel: tasks.ChannelAccount, Halt: tasks.HaltPath, TryOther: true}, func(w *effects) { w.TryOther = false; w.Latch = tasks.LatchReleased }},
		"blocked halts the source and archives": {Classified{Outcome: tasks.Blocked, Code: 31337},
			effects{Verdict: tasks.Archive, Channel: tasks.ChannelAccount, Halt: tasks.HaltSource, TryOther: true}, func(w *effects) { w.TryOther = false; w.Latch = tasks.LatchReleased }},
		"newer_payload is snoozed": {Classified{Outcome: tasks.NewerPayload},
			effects{Verdict: tasks.Snooze, Delay: time.Minute, Channel: tasks.ChannelNone}, func(w *effects) { w.Latch = tasks.LatchUntouched }},
		"interrupted is snoozed for a second": {Classified{Outcome: tasks.Interrupted, Phase: audd.PhaseUnsent},
			effects{Verdict: tasks.Snooze, Delay: time.Second, Channel: tasks.ChannelExcluded}, func(w *effects) { w.Latch = tasks.LatchReleased }},
		"refused is snoozed as long as the gate asks": {Classified{Outcome: tasks.Refused, RetryAfter: 90 * time.Second},
			effects{Verdict: tasks.Snooze, Delay: 90 * time.Second, Channel: tasks.ChannelNone}, func(w *effects) { w.Latch = tasks.LatchUntouched }},
		"store_down is snoozed": {Classified{Outcome: tasks.StoreDown},
			effects{Verdict: tasks.Snooze, Delay: 5 * time.Second, Channel: tasks.ChannelNone}, func(w *effects) { w.Latch = tasks.LatchReleased }},
		"crash is retried at once, an upload held": {Classified{Outcome: tasks.Crash},
			effects{Verdict: tasks.Retry, Counted: true, Billed: true, Channel: tasks.ChannelExcluded, UnitsKept: true},
			func(w *effects) { w.Verdict = tasks.Hold; w.Latch = tasks.LatchUncertain }},
		"crash before anything was sent is retried and refunded, also an upload": {Classified{Outcome: tasks.Crash, Phase: audd.PhaseUnsent},
			effects{Verdict: tasks.Retry, Counted: true, Channel: tasks.ChannelExcluded}, func(w *effects) { w.Latch = tasks.LatchReleased }},
		"expired is archived, replayable": {Classified{Outcome: tasks.Expired},
			effects{Verdict: tasks.Archive, Channel: tasks.ChannelNone}, func(w *effects) { w.Latch = tasks.LatchUntouched }},
		"unknown code is archived, replayable, and charged": {Classified{Outcome: tasks.Unknown, Code: 40},
			effects{Verdict: tasks.Archive, Channel: tasks.ChannelExcluded, UnitsKept: true}, func(w *effects) { w.Latch = tasks.LatchRejected }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := tc.recognize
			want.Latch = tasks.LatchUntouched
			for _, path := range []tasks.Path{tasks.Recognize, tasks.Enterprise} {
				d := Default().Decide(path, tc.c, tasks.AttemptRecord{PossiblyBilled: charged(tc.c), Counted: charged(tc.c)}, 0)
				if diff := cmp.Diff(want, effectsOf(d)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", path, diff)
				}
				assert.Equal(t, tc.c.Outcome, d.Outcome)
				assertReason(t, d.Outcome, d.Reason)
			}
			tc.upload(&want)
			d := Default().Decide(tasks.Upload, tc.c, tasks.AttemptRecord{PossiblyBilled: charged(tc.c), Counted: charged(tc.c)}, 0)
			if diff := cmp.Diff(want, effectsOf(d)); diff != "" {
				t.Errorf("upload (-want +got):\n%s", diff)
			}
		})
	}
}

// charged is what the record already holds of the attempt itself: a crash was
// charged when the call was admitted.
func charged(c Classified) int { return charge(c.Outcome == tasks.Crash) }

func TestDecideArchivesWhenABudgetIsUsedUp(t *testing.T) {
	t.Parallel()
	unavailable := Classified{Outcome: tasks.Unavailable, HTTPStatus: 503, Reason: "unavailable: HTTP 503"}
	unsent := Classified{Outcome: tasks.UnavailableUnsent, Reason: "unavailable_unsent: no such host"}
	throttled := Classified{Outcome: tasks.Throttled, HTTPStatus: 429}
	crash := Classified{Outcome: tasks.Crash}
	crashUnsent := Classified{Outcome: tasks.Crash, Phase: audd.PhaseUnsent}
	missing := Classified{Outcome: tasks.InputMissing}
	for name, tc := range map[string]struct {
		c    Classified
		r    tasks.AttemptRecord
		want tasks.Verdict
		end  string // of the reason
	}{
		"the second billed call is retried":                 {unavailable, tasks.AttemptRecord{Counted: 1, PossiblyBilled: 1}, tasks.Retry, "HTTP 503"},
		"the third billed call is the last":                 {unavailable, tasks.AttemptRecord{Counted: 2, PossiblyBilled: 2}, tasks.Archive, "; max_possibly_billed used up (3 of 3)"},
		"the fourth counted attempt is retried":             {unsent, tasks.AttemptRecord{Counted: 3}, tasks.Retry, "no such host"},
		"the fifth counted attempt is the last":             {unsent, tasks.AttemptRecord{Counted: 4}, tasks.Archive, "; max_attempts used up (5 of 5)"},
		"unsent after two billed calls is retried":          {unsent, tasks.AttemptRecord{Counted: 2, PossiblyBilled: 2}, tasks.Retry, "no such host"},
		"throttled after four attempts is snoozed":          {throttled, tasks.AttemptRecord{Counted: 4, PossiblyBilled: 2}, tasks.Snooze, "throttled"},
		"throttled with all charges used is snoozed":        {throttled, tasks.AttemptRecord{Counted: 5, PossiblyBilled: 3}, tasks.Snooze, "throttled"},
		"the give-up time ends a retry":                     {unsent, tasks.AttemptRecord{Spent: 24 * time.Hour}, tasks.Archive, "; give_up_after used up (24h0m0s of 24h0m0s)"},
		"the duration of the call counts":                   {Classified{Outcome: tasks.UnavailableUnsent, Latency: time.Hour}, tasks.AttemptRecord{Spent: 23 * time.Hour}, tasks.Archive, "; give_up_after used up (24h0m0s of 24h0m0s)"},
		"the give-up time ends a throttled task":            {throttled, tasks.AttemptRecord{Spent: 25 * time.Hour}, tasks.Archive, "; give_up_after used up (25h0m0s of 24h0m0s)"},
		"the give-up time does not end a refused task":      {Classified{Outcome: tasks.Refused}, tasks.AttemptRecord{Spent: 99 * time.Hour}, tasks.Snooze, "refused"},
		"the give-up time does not end an interrupted task": {Classified{Outcome: tasks.Interrupted}, tasks.AttemptRecord{Spent: 99 * time.Hour}, tasks.Snooze, "interrupted"},
		"a second crash is retried":                         {crash, tasks.AttemptRecord{Counted: 2, PossiblyBilled: 2}, tasks.Retry, "crash"},
		"a third crash was the last billed call":            {crash, tasks.AttemptRecord{Counted: 3, PossiblyBilled: 3}, tasks.Archive, "; max_possibly_billed used up (3 of 3)"},
		"an unsent crash is not billed":                     {crashUnsent, tasks.AttemptRecord{Counted: 3, PossiblyBilled: 3}, tasks.Retry, "crash"},
		"an unsent crash is still counted":                  {crashUnsent, tasks.AttemptRecord{Counted: 5, PossiblyBilled: 1}, tasks.Archive, "; max_attempts used up (5 of 5)"},
		"audio missing twice is retried":                    {missing, tasks.AttemptRecord{LastOutcome: tasks.InputMissing, SameOutcome: 1, Counted: 1}, tasks.Retry, "input_missing"},
		"audio missing three times is archived":             {missing, tasks.AttemptRecord{LastOutcome: tasks.InputMissing, SameOutcome: 2, Counted: 2}, tasks.Archive, "; input_missing_attempts used up (3 of 3)"},
		"another outcome in between resets the count":       {missing, tasks.AttemptRecord{LastOutcome: tasks.Throttled, SameOutcome: 9}, tasks.Retry, "input_missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := Default().Decide(tasks.Recognize, tc.c, tc.r, 0.5)
			assert.Equal(t, tc.want, d.Verdict)
			assert.Equal(t, tc.c.Outcome, d.Outcome)
			assert.False(t, d.Final, "an archive for a budget is not final")
			assert.Regexp(t, "^"+string(tc.c.Outcome), d.Reason)
			assert.Equal(t, tc.end, d.Reason[len(d.Reason)-min(len(d.Reason), len(tc.end)):])
			if d.Verdict == tasks.Archive {
				assert.Zero(t, d.Delay)
				assert.Zero(t, d.Backoff)
			}
		})
	}
}

func TestDecideArchives600AsInvalidRequestAfterThreeRetries(t *testing.T) {
	t.Parallel()
	c := Classified{Outcome: tasks.InputUnreachable, Code: 600, Reason: "input_unreachable: AudD code 600"}
	for i, want := range []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute} {
		r := tasks.AttemptRecord{Counted: i, SameOutcome: i, LastOutcome: tasks.InputUnreachable}
		for _, random := range []float64{0, 0.5, 0.999} {
			d := Default().Decide(tasks.Recognize, c, r, random)
			assert.Equal(t, tasks.Retry, d.Verdict)
			assert.True(t, d.Counted)
			assert.GreaterOrEqual(t, d.Delay, want)
			assert.LessOrEqual(t, d.Delay, want+time.Minute)
			assert.Equal(t, d.Delay, d.Backoff)
		}
	}
	last := tasks.AttemptRecord{Counted: 3, SameOutcome: 3, LastOutcome: tasks.InputUnreachable}
	d := Default().Decide(tasks.Recognize, c, last, 0)
	assert.Equal(t, tasks.Archive, d.Verdict)
	assert.Equal(t, tasks.InvalidRequest, d.Outcome)
	assert.True(t, d.Final)
	assert.Equal(t, "invalid_request: input_unreachable: AudD code 600; unreachable_retries used up (3 of 3)", d.Reason)
	assert.Equal(t, tasks.LatchUntouched, d.Latch)
	assert.Equal(t, tasks.LatchRejected, Default().Decide(tasks.Upload, c, last, 0).Latch)

	busy := tasks.AttemptRecord{Counted: 4, SameOutcome: 1, LastOutcome: tasks.InputUnreachable}
	d = Default().Decide(tasks.Recognize, c, busy, 0)
	assert.Equal(t, tasks.InputUnreachable, d.Outcome, "another budget ran out first: not final")
	assert.False(t, d.Final)
}

func TestDecideNeverRetriesBeforeRetryAfter(t *testing.T) {
	t.Parallel()
	day, hour := 24*time.Hour, time.Hour
	for name, tc := range map[string]struct {
		c           Classified
		least, most time.Duration
		block       time.Duration
	}{
		"429 with seconds":                      {Classified{Outcome: tasks.Throttled, RetryAfter: 3 * time.Second}, 3 * time.Second, 4 * time.Second, 3 * time.Second},
		"429 without Retry-After":               {Classified{Outcome: tasks.Throttled}, 2 * time.Second, 3 * time.Second, 0},
		"429 above the longest snooze":          {Classified{Outcome: tasks.Throttled, RetryAfter: 10 * hour}, 6 * hour, 6 * hour, 10 * hour},
		"429 above the longest block":           {Classified{Outcome: tasks.Throttled, RetryAfter: 40 * hour}, 6 * hour, 6 * hour, day},
		"611 without Retry-After waits an hour": {Classified{Outcome: tasks.Throttled, Code: 611}, hour, hour + time.Minute, hour},
		"611 with less waits an hour":           {Classified{Outcome: tasks.Throttled, Code: 611, RetryAfter: time.Minute}, hour, hour + time.Minute, hour},
		"611 with more waits longer":            {Classified{Outcome: tasks.Throttled, Code: 611, RetryAfter: 2 * hour}, 2 * hour, 2*hour + time.Minute, 2 * hour},
		"503 with seconds":                      {Classified{Outcome: tasks.Unavailable, RetryAfter: time.Minute}, time.Minute, 75 * time.Second, time.Minute},
		"503 with less than backoff":            {Classified{Outcome: tasks.Unavailable, RetryAfter: 1}, time.Second, 3 * time.Second, 1},
		"902 with Retry-After":                  {Classified{Outcome: tasks.Quota, RetryAfter: 2 * hour}, 2 * hour, 2*hour + time.Minute, 2 * hour},
		"a gate with a wait":                    {Classified{Outcome: tasks.Refused, RetryAfter: 5 * time.Second}, 5 * time.Second, 7 * time.Second, 0},
		"a gate without a wait":                 {Classified{Outcome: tasks.Refused}, time.Second, 2 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, random := range []float64{0, 0.3, 0.999} {
				d := Default().Decide(tasks.Recognize, tc.c, tasks.AttemptRecord{}, random)
				assert.GreaterOrEqual(t, d.Delay, tc.least)
				assert.LessOrEqual(t, d.Delay, tc.most)
				assert.Equal(t, tc.block, d.BlockFor)
			}
		})
	}
}

func TestDecideQuotaFailFastArchives(t *testing.T) {
	t.Parallel()
	p := Default()
	p.QuotaFull = tasks.QuotaFailFast
	d := p.Decide(tasks.Recognize, Classified{Outcome: tasks.Quota, Code: 902}, tasks.AttemptRecord{}, 0)
	assert.Equal(t, tasks.Archive, d.Verdict)
	assert.False(t, d.Final, "replayable")
	assert.Zero(t, d.Delay)
	assert.True(t, d.TryOther)
	assert.Equal(t, tasks.HaltPath, d.Halt)
}

func TestOnlyBackoffsAndThrottlesCountTowardsTheGiveUpTime(t *testing.T) {
	t.Parallel()
	backoff := func(o tasks.Outcome) time.Duration {
		return Default().Decide(tasks.Recognize, Classified{Outcome: o}, tasks.AttemptRecord{}, 0).Backoff
	}
	for _, o := range []tasks.Outcome{tasks.Throttled, tasks.Unavailable, tasks.UnavailableUnsent, tasks.Ambiguous, tasks.InputMissing, tasks.InputUnreachable} {
		assert.Positive(t, backoff(o), "%s", o)
	}
	for _, o := range []tasks.Outcome{tasks.Refused, tasks.Interrupted, tasks.StoreDown, tasks.NewerPayload, tasks.Quota, tasks.Match, tasks.InvalidAudio} {
		assert.Zero(t, backoff(o), "%s", o)
	}
}

func TestDecideDoublesTheWaitWhileAStoreIsDown(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]time.Duration{0: 5 * time.Second, 1: 10 * time.Second, 3: 40 * time.Second, 99: 5 * time.Minute} {
		d := Default().Decide(tasks.Recognize, Classified{Outcome: tasks.StoreDown}, tasks.AttemptRecord{LastOutcome: tasks.StoreDown, SameOutcome: n}, 0)
		assert.Equal(t, want, d.Delay, "after %d", n)
	}
}

func TestDecideTreatsUnknownOutcomesAsUnknown(t *testing.T) {
	t.Parallel()
	d := Default().Decide("no path", Classified{Outcome: "no outcome"}, tasks.AttemptRecord{}, 0)
	assert.Equal(t, tasks.Unknown, d.Outcome)
	assert.Equal(t, tasks.Archive, d.Verdict)
}
