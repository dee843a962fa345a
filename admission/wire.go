package admission

import (
	"time"

	"reprise/tasks"
)

// The types of this file are the requests and replies of lua/exchange.lua, which documents them.

// rules are the settings that all decisions of one process share.
type rules struct {
	PermitTTL    int64          `json:"permit_ttl_ms"`
	Lookahead    int64          `json:"lookahead_us"`
	SourcePolicy SourcePolicy   `json:"source_policy"`
	Sources      []SourceConfig `json:"sources"`
	Days         [3]span        `json:"days"`
	Months       [3]span        `json:"months"`
}

// span is a day or a budget month. Redis has no time zones. A worker sends it the periods around the worker's time, and
// Redis's clock decides which of them is current.
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

// acquireRequest is one acquire. The random numbers choose among sources and spread refused callers over time.
type acquireRequest struct {
	Request
	RandomA int32 `json:"random_a"`
	RandomB int32 `json:"random_b"`
}

type acquireReply struct { //nolint:errname // it embeds a refusal for its fields
	Refusal
	Result     result   `json:"result"`
	StartIn    int64    `json:"start_in_us"`
	Record     record   `json:"record"`
	WaitMillis int64    `json:"wait_ms"`
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
	Admitted
	CallReport
}

// CallReport is how an attempt ended. Settle reports it to the gates, refunds unused units and gives the permit back.
type CallReport struct {
	Outcome        tasks.Outcome   `json:"outcome"`
	Channel        tasks.Channel   `json:"channel"`         // empty = none
	Halt           tasks.HaltScope `json:"halt,omitempty"`  // what an account failure halts; empty = nothing
	Probeable      bool            `json:"probeable"`       // a blocked source may reopen without an operator: it is probed every few minutes
	RetryAfter     time.Duration   `json:"retry_after_ns"`  // of a throttle; 0 = AudD named none
	Counted        bool            `json:"counted"`         // counts against max_attempts
	PossiblyBilled bool            `json:"possibly_billed"` // counts against max_possibly_billed
	UnitsUsed      int64           `json:"units_used"`      // of the reserved units; 0 refunds all
	Latency        time.Duration   `json:"latency_ns"`      // of the call
	Backoff        time.Duration   `json:"backoff_ns"`      // how long the task waits before its next attempt
	ClearRecord    bool            `json:"clear_record"`    // the task is finished: its record is cleared
}
