package admission

import (
	"time"

	"reprise/tasks"
)

// The requests and replies of lua/exchange.lua, which documents them.

// rules is what all decisions of one process share.
type rules struct {
	PermitTTL    int64          `json:"permit_ttl_ms"`
	Lookahead    int64          `json:"lookahead_us"`
	SourcePolicy SourcePolicy   `json:"source_policy"`
	Sources      []SourceConfig `json:"sources"`
	Days         [3]span        `json:"days"`
	Months       [3]span        `json:"months"`
}

// span is a day or a budget month as the scripts get it. Redis has no time zones:
// it gets the periods around the worker's time, and its own clock decides which of
// them is current.
type span struct {
	Name     string `json:"name"` // 2026-11-30 or 2026-11
	StartsAt int64  `json:"starts_at"`
	EndsAt   int64  `json:"ends_at"`
}

// exchangeRequest is a batch of settles and acquires.
type exchangeRequest struct {
	rules
	Settles  []*settleRequest  `json:"settles,omitempty"`
	Acquires []*acquireRequest `json:"acquires,omitempty"`
}

type exchangeReply struct {
	Revision int64          `json:"revision"`
	Replies  []acquireReply `json:"replies"` // one per acquire
}

// acquireRequest is one acquire. The random numbers choose among sources and spread the
// callers that are refused.
type acquireRequest struct {
	Request
	RandomA int32 `json:"random_a"`
	RandomB int32 `json:"random_b"`
}

type acquireReply struct {
	Result     result   `json:"result"`
	StartIn    int64    `json:"start_in_us"`
	Record     record   `json:"record"`
	Gate       Gate     `json:"gate"`
	Source     string   `json:"source"`
	WaitMillis int64    `json:"wait_ms"`
	AllBlocked bool     `json:"all_blocked"`
	Permanent  bool     `json:"permanent"`
	Reason     string   `json:"reason"`
	Now        int64    `json:"now"`
	Budgets    []string `json:"budgets"`
}

// result is what a script decided.
type result string

const (
	resultGranted        result = "granted"
	resultRefused        result = "refused"
	resultInFlight       result = "in_flight"
	resultMissing        result = "missing"
	resultLimitsMissing  result = "limits_missing"
	resultClockSkew      result = "clock_skew"
	resultAttemptSettled result = "attempt_settled"
	resultTaskEnded      result = "task_ended"
)

// settleRequest is one settle.
type settleRequest struct {
	attempt
	CallReport
}

// attempt is what settle and renew say about an attempt that holds a permit.
type attempt struct {
	Key        string     `json:"key"`
	Attempt    string     `json:"attempt"`
	Source     string     `json:"source"`
	Path       tasks.Path `json:"path"`
	Group      string     `json:"group,omitempty"`
	Generation int64      `json:"generation"`
	Epoch      int64      `json:"epoch"`
	AdmittedAt int64      `json:"admitted_at"`
	Budgets    string     `json:"budgets"`
}

func (p *Permit) attempt() attempt {
	return attempt{
		Key: p.Key, Attempt: p.AttemptID, Source: p.Source, Path: p.Path, Group: p.Group, Generation: p.generation, Epoch: p.Epoch,
		AdmittedAt: p.admitted, Budgets: p.budgets,
	}
}

// CallReport says how an attempt ended: it is reported to the gates, unused units
// are refunded and the permit is given back, in one step.
type CallReport struct {
	Outcome        tasks.Outcome   `json:"outcome"`
	Channel        tasks.Channel   `json:"channel"`         // empty = none
	Halt           tasks.HaltScope `json:"halt,omitempty"`  // what an account answer halts
	Probeable      bool            `json:"probeable"`       // of a blocked answer: it may pass without an operator, so it is probed every few minutes
	RetryAfter     time.Duration   `json:"retry_after_ns"`  // of a throttle; 0 = AudD named none
	Counted        bool            `json:"counted"`         // counts against max_attempts
	PossiblyBilled bool            `json:"possibly_billed"` // counts against max_possibly_billed
	UnitsUsed      int64           `json:"units_used"`      // of the reserved ones; 0 refunds all
	Latency        time.Duration   `json:"latency_ns"`      // of the call
	Backoff        time.Duration   `json:"backoff_ns"`      // the task's own wait that follows
	ClearRecord    bool            `json:"clear_record"`    // the task is finished: its record is cleared
}
