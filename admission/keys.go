package admission

import "fmt"

// DefaultPrefix begins every key. The braces put all keys into one Redis Cluster slot, because every decision reads several
// keys at once.
const DefaultPrefix = "reprise:{adm}:"

// EndedKey returns the key of a hash: EndedField → id of the settlement. It lists the tasks whose verdict is not in SQL yet.
// The worker's outbox writes it. Acquire admits none of these tasks.
func EndedKey(prefix string) string { return prefix + "ended" }

// EndedField returns the field of a task in EndedKey.
func EndedField(key string, generation int64) string { return fmt.Sprintf("%s@%d", key, generation) }

// KEY LAYOUT. Every key, after the prefix. Numbers are integers. Times are milliseconds of Redis's clock, or microseconds
// where a name ends in _us. A scope is <source>:<path>, group/<name>, global or tuning. An absent field is 0 or empty.
//
//	key                      type    kept                     written by
//	state:<scope>            hash    always                   exchange, renew, limits, halt
//	permits                  zset    while a permit is held   exchange, renew
//	task:<task key>          string  14 days after the last   exchange, renew
//	                                 attempt; 10 min after
//	                                 the task is finished
//	budget:<scope>:<period>  hash    40 days after its end    seed creates it; exchange, renew change it
//	limits                   hash    always                   limits
//	pause:<queue>            hash    always                   pause
//	ended, outbox            hash    until SQL has the rows   the worker's outbox
//	outbox:rejected          hash    always                   the worker's outbox
//
// state:<source>:<path>:
//
//	revision                 of the limits copied here; absent = no limits yet, nothing is admitted
//	limit_<name>             the limits in force, by their names in the settings; 0 = off
//	in_flight                permits held; recounted from permits every 30 s
//	requests_arrival_us      theoretical arrival time of the next request (GCRA)
//	requests_idle_us         when that rate last stood idle
//	units_arrival_us, units_idle_us                           the same for units
//	requests_place_us, units_place_us, in_flight_place_us     the last place given to a refused caller
//	aimd_cap                 cap of the learned concurrency where none is configured; 0 = AIMD off
//	learned_concurrency_milli, learned_rate_milli             learned permits and requests a minute, ×1000
//	slow_start, rate_is_coarse                                1 until the first cut; 1 while the rate is a first guess
//	concurrency_at_cut_milli, rate_at_cut_milli               before the last cut
//	cut_at, rate_grown_at, limit_reached_at                   when this happened last
//	throttle_share_milli                                      throttles among the recent answers, ×1000
//	success_window_at, success_count                          the window of about a second that measures
//	success_rate_milli, best_success_rate_milli               successes a minute ×1000, and the best recent value
//	health_milli, latency_ms, last_success_at                 averages of success (×1000) and latency
//	throttled_until
//	breaker_open, breaker_probe_at, breaker_trips             1 = open; when a probe may go; trips in a row
//	halt_reason, halt_by, halt_at, halt_fingerprint           fingerprint of the token that AudD refused
//	halt_probe_at                                             when a probe may go; 0 = only after a resume
//	refused_token:<fingerprint>                               when AudD refused that token last; a resume deletes it
//	resumed_by                                                who resumed last
//	probe                                                     task key and attempt id of the half-open probe
//	epoch                                                     rises whenever the source is blocked or reopened
//	failures_in_row, auth_failures_in_row, not_found_in_row
//
// state:group/<name>: revision, limit_ceiling (per mille), limit_source (pinned), limit_units_per_day, limit_units_per_month,
// and the group's part of each source+path in <source>:<path>:in_flight, …:in_flight_place_us, …:requests_arrival_us,
// …:requests_idle_us, …:requests_place_us.
//
// state:global: revision, limit_<name>, in_flight, the fields of requests and units as above, round_robin_turn, recounted_at,
// recovery_hold_until (until then missing unit budgets stay missing, because Redis lost its data).
//
// state:tuning: scopes (all that have limits, comma-separated), and Config.AIMD and Config.Breaker: aimd, aimd_start,
// breaker_failures, breaker_cooldown …
//
// permits: member = task key, score = when the permit ends.
//
// task:<task key>, the record of a task, JSON:
//
//	attempt                                  id of the attempt that is charged and not settled
//	source, path, group, units, admitted_at  of the last attempt
//	epoch, probe, budgets                    of the last attempt; budgets are names, comma-separated
//	start_us                                 µs after admitted_at at which its call may start
//	forfeited                                its units count as spent, because its permit ended
//	settled_attempts                         ids of the last four, newest first; a finished task keeps nothing else
//	generation, counted                      of the task; its counted attempts
//	possibly_billed                          its possibly billed attempts, including the attempt in flight
//	failures_in_row, same_outcome, throttles failures, the last outcome and throttles, each in a row
//	last_outcome, spent_ms, first_failure_at
//	failed_source, source_failures           source of the last failure; failures in a row on it
//	lost                                     the attempt before, if it was never settled: attempt, source, path, units,
//	                                         admitted_at, budgets, reported (a later settled attempt has reported it)
//
// budget:<scope>:<period>: reserved, spent; reserved + spent ≤ cap. period is 2026-11-30 or 2026-11. While spent is missing,
// spent_at:<ms> has the units that were spent at that moment.
//
// limits: revision, by, at, and <scope>/<limit> = value.
//
// pause:<queue>: reason:<name> = JSON {expires_at (0 = never), since, by, evidence}; flag (asynq's pause flag as Reprise stored
// it last: off, on, pausing, unpausing), version (rises with every change), override_until (automatic reasons are not added
// before this time, because an operator resumed the queue).
