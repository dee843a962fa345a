package tasks

// QuotaFull is what happens to a task when a unit budget, or the account's
// quota at AudD, is used up and no other source can take it.
type QuotaFull string

// The closed set of answers to a full quota.
const (
	QuotaWait     QuotaFull = "wait"      // the task waits until the quota is back
	QuotaFailFast QuotaFull = "fail_fast" // the task is archived, replayable
)
