package tasks

// QuotaFull is what happens to a task when a unit budget or the account's
// quota at AudD is used up and no other source can take the task.
type QuotaFull string

// The closed set of reactions to a used-up quota.
const (
	QuotaWait     QuotaFull = "wait"      // the task waits until the quota is back; the default
	QuotaFailFast QuotaFull = "fail_fast" // the task is archived, replayable
)
