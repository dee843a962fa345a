package admission

import "fmt"

// DefaultPrefix is in front of every key. The braces put all keys into one Redis
// Cluster slot, because every decision reads several of them at once.
const DefaultPrefix = "reprise:{adm}:"

// EndedKey is the hash of the tasks that have a verdict that is not in SQL yet:
// EndedField → id of the settlement. The worker's outbox writes it; exchange admits
// no task that is in it.
func EndedKey(prefix string) string { return prefix + "ended" }

// EndedField is the field of a task in EndedKey.
func EndedField(key string, generation int64) string { return fmt.Sprintf("%s@%d", key, generation) }

// KEY LAYOUT. Every key, after the prefix. Numbers are integers; times are
// milliseconds of Redis's clock, and microseconds where a name ends in _us. A scope is
// <source>:<path>, group/<name>, global or tuning. An absent field is 0 or empty.
//
//	key                      type    kept                    written by
//	state:<scope>            hash    always                  exchange, renew, limits, halt
//	permits                  zset    while a permit is held  exchange, renew
//	task:<task key>          string  14 days after the last  exchange, renew
//	                                 attempt, 10 min once
//	                                 the task is finished
//	budget:<scope>:<period>  hash    40 days after its end   seed creates; exchange, renew change
//	limits                   hash    always                  limits
//	pause:<queue>            hash    always                  pause
//	ended, outbox            hash    until SQL has the rows  the worker's outbox
//	outbox:rejected          hash    always                  the worker's outbox
//
// state:<source>:<path>:
//
//	revision                 of the limits copied here; absent = no limits yet, nothing is admitted
//	limit_<name>             the limits in force, by their names in the settings; 0 = off
//	in_flight                permits held; recounted from permits every 30 s
//	requests_arrival_us      theoretical arrival time of the next request (GCRA); units_… for units
//	requests_idle_us         when that rate last stood idle
//	requests_place_us        last place given to a refused caller; in_flight_place_us for permits
//	aimd_cap                 cap of the learned concurrency where none is configured; 0 = AIMD off
//	learned_concurrency_milli, learned_rate_milli             learned permits and requests a minute, ×1000
//	slow_start, rate_is_coarse                                1 until the first cut; 1 while the rate is a first guess
//	concurrency_at_cut_milli, rate_at_cut_milli               before the last cut
//	cut_at, rate_grown_at, limit_reached_at                   when
//	throttle_share_milli                                      throttles among the recent answers, ×1000
//	success_window_at, success_count                          the window of about a second that measures
//	success_rate_milli, best_success_rate_milli               successes a minute ×1000, and the best of late
//	health_milli, latency_ms, last_success_at                 averages of success (×1000) and latency
//	throttled_until
//	breaker_open, breaker_probe_at, breaker_trips             1 = open; when a probe may go; trips in a row
//	halt_reason, halt_by, halt_at, halt_fingerprint           fingerprint of the token that was refused
//	halt_probe_at                                             when a probe may go; 0 = only after a resume
//	refused_token:<fingerprint>                               when AudD refused that token last; deleted by a resume
//	resumed_by                                                who resumed last
//	probe                                                     task key and attempt id of the half-open probe
//	epoch                                                     rises whenever the source is blocked or reopened
//	failures_in_row, auth_failures_in_row, not_found_in_row
//
// state:group/<name>: revision, limit_ceiling (per mille), limit_source (pinned),
// limit_units_per_day, limit_units_per_month, and per source+path, for the group's part
// of it, <source>:<path>:in_flight, …:in_flight_place_us and …:requests_arrival_us,
// …:requests_idle_us, …:requests_place_us.
//
// state:global: revision, limit_<name>, in_flight, the fields of requests and units as
// above, round_robin_turn, recounted_at, recovery_hold_until (unit budgets that are
// missing stay missing until then, because Redis lost its data).
//
// state:tuning: scopes (all that have limits, comma-separated), and Config.AIMD and
// Config.Breaker: aimd, aimd_start, breaker_failures, breaker_cooldown …
//
// permits: member = task key, score = when the permit ends.
//
// task:<task key>, the record of a task, JSON:
//
//	attempt                                  id of the attempt that is charged and not settled
//	source, path, group, units, admitted_at  of the last attempt
//	epoch, probe, budgets                    of it too; names of the unit budgets it charged, comma-separated
//	start_us                                 µs after admitted_at at which its call may start
//	forfeited                                its units count as spent, because its permit ended
//	settled_attempts                         ids of the last four, newest first; all that is kept of a finished task
//	generation, counted, possibly_billed     counted attempts; possibly billed ones, the attempt in flight included
//	failures_in_row, same_outcome, throttles in a row: failures, the last outcome, throttles
//	last_outcome, spent_ms, first_failure_at
//	failed_source, source_failures           source of the last failure, failures in a row on it
//	lost_attempt, lost_source, lost_units, lost_admitted_at, lost_budgets   the attempt before, if it was lost
//	lost_reported                            a later attempt, used and settled, has reported the lost one
//
// budget:<scope>:<period>: reserved, spent; reserved + spent ≤ cap. period is 2026-11-30
// or 2026-11. While spent is missing, spent_at:<ms> is what was spent at that moment.
//
// limits: revision, by, at, and <scope>/<limit> = value.
//
// pause:<queue>: reason:<name> = JSON {expires_at (0 = never), since, by, evidence}; flag
// (asynq's pause flag as this program last set it: off, on, pausing, unpausing), version
// (rises with every change), override_until (until then automatic reasons are kept out,
// because an operator opened the queue).
