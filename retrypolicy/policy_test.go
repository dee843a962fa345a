package retrypolicy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"reprise/tasks"
)

func TestDefaultPolicyIsValid(t *testing.T) {
	t.Parallel()
	p := Default()
	require.NoError(t, p.Validate())
	assert.Equal(t, 5, p.MaxAttempts)
	assert.Equal(t, 3, p.MaxPossiblyBilled)
	assert.Equal(t, 24*time.Hour, p.GiveUpAfter)
	assert.Equal(t, tasks.QuotaWait, p.QuotaFull)
}

func TestValidateNamesEveryInvalidField(t *testing.T) {
	t.Parallel()
	err := Policy{BackoffMax: -1}.Validate()
	require.Error(t, err)
	for _, name := range []string{
		"budgets.max_attempts", "budgets.max_possibly_billed", "budgets.give_up_after", "backoff_base", "quota_full",
	} {
		assert.ErrorContains(t, err, name)
	}
}

func TestValidateRejectsContradictingFields(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*Policy)
		want   string
	}{
		"base above max":                   {func(p *Policy) { p.BackoffBase = time.Hour }, "backoff_base 1h0m0s: must be more than 0 and at most backoff_max 5m0s"},
		"backoff above the longest snooze": {func(p *Policy) { p.BackoffMax = 7 * time.Hour }, "backoff_max 7h0m0s: must be at most 6h0m0s"},
		"too many attempts":                {func(p *Policy) { p.MaxAttempts = 1001 }, "max_attempts 1001: must be 1 to 1000"},
		"give-up time too long":            {func(p *Policy) { p.GiveUpAfter = maxGiveUpAfter + 1 }, "give_up_after"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Default()
			tc.change(&p)
			assert.ErrorContains(t, p.Validate(), tc.want)
		})
	}
}

func TestTaskIsGivenUpWhenItsGiveUpTimeIsUsedUp(t *testing.T) {
	t.Parallel()
	p := Default()
	assert.False(t, p.GivenUp(tasks.AttemptRecord{Spent: 24*time.Hour - 1}))
	assert.True(t, p.GivenUp(tasks.AttemptRecord{Spent: 24 * time.Hour}))
}
