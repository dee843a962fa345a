package retrypolicy

import (
	"reprise/tasks"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDefaultIsValidAndIsTheSpecification(t *testing.T) {
	t.Parallel()
	p := Default()
	require.NoError(t, p.Validate())
	assert.Equal(t, 5, p.MaxAttempts)
	assert.Equal(t, 3, p.MaxPossiblyBilled)
	assert.Equal(t, 24*time.Hour, p.GiveUpAfter)
	assert.Equal(t, 6*time.Hour, p.MaxSnooze)
	assert.Equal(t, 24*time.Hour, p.MaxBlock)
	assert.Equal(t, tasks.QuotaWait, p.QuotaFull)
}

func TestValidateNamesEveryWrongField(t *testing.T) {
	t.Parallel()
	err := Policy{UnreachableWaits: []time.Duration{-1}}.Validate()
	require.Error(t, err)
	for _, name := range []string{
		"max_attempts", "max_possibly_billed", "input_missing_attempts", "give_up_after", "backoff_base", "backoff_max",
		"min_stream_limit_wait", "max_snooze", "max_shut", "interrupted_wait", "newer_payload_wait", "store_down_wait",
		"unreachable_waits[0]", "quota_full", "quota_wait",
	} {
		assert.ErrorContains(t, err, name)
	}
}

func TestValidateComparesFieldsWithEachOther(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*Policy)
		want   string
	}{
		"base above max":                {func(p *Policy) { p.BackoffBase = time.Hour }, "backoff_base 1h0m0s is more than backoff_max"},
		"backoff beyond snooze":         {func(p *Policy) { p.BackoffMax = 7 * time.Hour }, "backoff_max 7h0m0s is more than max_snooze"},
		"snooze beyond shut":            {func(p *Policy) { p.MaxSnooze = 25 * time.Hour }, "max_snooze 25h0m0s is more than max_shut"},
		"too many attempts":             {func(p *Policy) { p.MaxAttempts = 1001 }, "max_attempts 1001: want 1 to 1000"},
		"endless give-up time":          {func(p *Policy) { p.GiveUpAfter = maxSetting + 1 }, "give_up_after"},
		"unreachable wait above snooze": {func(p *Policy) { p.UnreachableWaits = []time.Duration{7 * time.Hour} }, "unreachable_waits[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Default()
			tc.change(&p)
			assert.ErrorContains(t, p.Validate(), tc.want)
		})
	}
}

func TestDefaultsDoNotShareTheirSlices(t *testing.T) {
	t.Parallel()
	a, b := Default(), Default()
	a.UnreachableWaits[0] = time.Hour
	assert.Equal(t, time.Minute, b.UnreachableWaits[0])
}

func TestGivenUpOnceTheOwnTimeIsUsed(t *testing.T) {
	t.Parallel()
	p := Default()
	assert.False(t, p.GivenUp(tasks.AttemptRecord{Spent: 24*time.Hour - 1}))
	assert.True(t, p.GivenUp(tasks.AttemptRecord{Spent: 24 * time.Hour}))
}
