package admission

import "fmt"

// DefaultPrefix is in front of every key. The braces put all keys into one
// Redis Cluster slot, because every decision reads several of them at once.
const DefaultPrefix = "reprise:{adm}:"

// EndedKey is the hash that says which tasks have a verdict although SQL does
// not know it yet: EndedField → id of the settlement. The worker's outbox
// writes it; exchange admits no task that is in it.
func EndedKey(prefix string) string { return prefix + "ended" }

// EndedField is the field of a task in EndedKey.
func EndedField(key string, generation int64) string { return fmt.Sprintf("%s@%d", key, generation) }

// Every key, after the prefix. Numbers are integers; times are milliseconds of
// Redis's clock unless it says µs. Only ended, outbox and outbox:rejected are
// written by others (package worker).
//
//	key                     type  lives          written by
//	s:<source>:<path>       hash  for ever       exchange, renew, limits, gate
//	g                       hash  for ever       exchange, renew, limits
//	grp:<group>             hash  for ever       exchange, renew, limits
//	tune                    hash  for ever       limits
//	p                       zset  while permits  exchange, renew
//	j:<task key>            str   14 days after  exchange, renew
//	                              the last write,
//	                              10 min once the
//	                              task is finished
//	ended                   hash  while SQL lags outbox_put, outbox_drop
//	outbox                  hash  while SQL lags outbox_put, outbox_drop
//	outbox:rejected         hash  for ever       outbox_page.go
//	b:<scope>:<period>      hash  40 days after  seed creates, exchange and
//	                              its end        renew change
//	limits                  hash  for ever       limits
//	limits:log              list  200 entries    limits
//	pause:<queue>           hash  for ever       pause
//
// s:<source>:<path>, the state of a source+path:
//
//	rev                          revision of the limits copied here; absent = not loaded, nothing is admitted
//	am                           cap of AIMD where no concurrency is configured; 0 = AIMD off
//	lc lr lrb lu lub ld lm       limits (absent = 0): concurrency, requests/min and burst, units/min and burst, units/day, units/month
//	inflight                     permits held; recounted from p every 30 s
//	tat utat                     GCRA of requests and units, µs; with _idle when it last stood idle, _wait the last place given to a waiter
//	inflight_wait                last place given to a waiter for a permit, µs
//	lim ss wmax full             AIMD: permits ×1000, slow start, permits at the last cut, when the limit was last reached
//	rl rss rmax rg               learned requests/min ×1000, still a coarse guess, rate at the last cut, when it last grew
//	cut tq                       last cut; share of throttles ×1000
//	rw rn rq rp                  successes: start and count of the window, rate ×1000 and its recent best
//	h lat ok                     success average ×1000, latency average ms, last success
//	thr                          throttled until
//	brk brk_until brk_n          breaker open, until a probe, how often in a row
//	halt halt_by halt_at halt_fp halt_probe   reason, who, since, token, when a probe may go (0: a person)
//	bad:<fingerprint>            when AudD refused that token last; gone after a resume
//	resumed_by                   who resumed last
//	probe epoch                  task key and attempt id of the probe; rises with every opening and shutting
//	fails auth nf                in a row: failures, authentication failures, 404s
//
// g, everything together: rev, the limits, inflight, tat, utat as above, rr
// (turn of round_robin), recount (when p was last counted), blind (unit budgets
// that are missing stay so until then, because Redis lost everything).
//
// tune: aimd aimd_start aimd_floor aimd_max, breaker_failures breaker_window breaker_cooldown
// breaker_cooldown_max breaker_auth_failures breaker_not_found, breaker_probe_quota breaker_probe_blocked (Config.AIMD and
// Config.Breaker), scopes (names of all s: and grp: hashes).
//
// grp:<group>: rev, share (per mille), pin (source), ld, lm,
// in:<source>:<path> (permits held), tat:<source>:<path> (its share of the rate).
//
// p: member = task key, score = when the permit ends.
//
// j:<task key>, the record of a task, a MessagePack map (JSON where Redis has no
// MessagePack); a field it does not have is 0 or empty:
//
//	a                        attempt id that is charged and not settled
//	src path grp units at    of that attempt: source, path, group, units, admitted
//	epoch start probe bk     of it too: epoch, start µs, 1 if it probes, budgets it charged
//	kept                     1: its units were turned from reserved to spent when its permit ended
//	t                        the last four attempt ids settled, newest first (tombstones); all that is left of a finished task
//	gen counted pb           generation, counted attempts, possibly billed ones (the attempt in flight included)
//	streak same thr          in a row: failures, the same outcome, throttles
//	last spent ff            last outcome, ms spent, first failure
//	fs fn                    source of the last failure, failures in a row on it
//	la lsrc lunits lat lbk   the attempt before, if it was lost: id, source, units, admitted, budgets
//	told                     1: an attempt that reported the lost one was used and settled
//
// ended: <task key>@<generation> = id of the settlement that ended it, an entry
// of outbox.
//
// b:<scope>:<period>: reserved, spent; reserved + spent ≤ cap. scope is
// <source>:<path>, g or group/<name>; period is 2026-11-30 or 2026-11. While it
// is missing (no spent), late:<ms> notes what was spent at that moment.
//
// limits: rev, by, at, and <scope>/<limit> = value.
//
// pause:<queue>: a field per reason, "until at by evidence"; #flag #ver
// #override are explained in lua/pause.lua.
