// Package admission decides which AudD call may go now, for any number of workers together. Limits are used fully and never
// exceeded. Every decision is one Lua script in Redis, and uses Redis's clock only. A call takes something from every gate or
// from none.
//
// # The life of a call
//
//	Acquire ──► Permit ──► Valid, right before the first body byte ──► the call ──► Settle
//	   │                     (renewed every 3 s by Run)
//	   ├─► Refusal: the gate that refused, and when to acquire again ──► Wait ──► Acquire
//	   ├─► InFlight: another attempt of this task holds a permit
//	   ├─► MissingPeriods: a unit budget must be seeded from the call rows first (Seed)
//	   └─► ErrUnavailable: no decision. No permit, no attempt counted
//
// Acquire and Settle carry an attempt id that the caller made. A repeated operation changes nothing, so an operation whose
// reply was lost is sent again. A task is never in flight twice. An attempt is charged the most that it may cost when it is
// admitted, and its real cost when it is settled. If its worker dies, the attempt stays charged, and the next Acquire of the
// task returns it as Permit.Lost. A permit lives for 12 s without renewal and is trusted for 10 s.
//
// # The gates
//
// In the order in which they decide, per source and path unless stated otherwise:
//
//	throttle            AudD replied 429 or 611: until its Retry-After, or for about a call's latency without one. A later
//	                    throttle does not shorten it, and a resume does not end it
//	halt                an account failure or an operator. Quota and subscription are probed each hour, blocks that may pass
//	                    every 5 min. A token that AudD has not refused ends a halt for authentication. Resume ends every
//	                    halt through a half-open probe
//	breaker             5 failures in a row without evidence of health; after the cooldown one call is the half-open probe
//	concurrency         permits: configured, and learned below the configured limit (AIMD)
//	global_concurrency  permits over all sources and paths
//	group_concurrency   a group's share of the permits of the source+path
//	group_requests      a group's share of its request rate
//	requests, units     smooth rates (GCRA): configured, and for requests also learned
//	global_requests, global_units
//	units_day, units_month, then the same of global_ and group_: unit budgets per calendar day and budget month
//
// A rate may promise a start up to 50 ms ahead. Acquire waits for it, so that callers which come slightly late leave no part
// of the rate unused. Each refused caller gets its own time to acquire again. Wait keeps the order within a process.
//
// # What is learned
//
// A new source+path may have eight calls in flight. The number doubles per round until AudD throttles. From then on it follows
// AIMD: it is cut by 15 % per congestion event (by half when throttles persist), grows fast to just below the last cut, and
// slowly near it. A concurrency cannot express a rate, so a request rate is learned in the same way. A limit grows only while
// it is reached.
//
// # Limits
//
// Limits are in Redis and have a revision. Config only seeds them. SetLimits changes them for all workers at once. Redis
// without limits admits nothing. After Redis lost its data, a recovery hold of a few seconds admits nothing on a unit budget.
// In this time the renewals register the calls in flight again. No call row has them yet, so their units would otherwise be
// given away twice.
//
// # Where things are
//
// keys.go documents every key and field in Redis. The scripts are in lua/, each with its request and reply on top. scripts.go
// lists the parts of each script. A process sends its operations in batches (batch.go): while one call to Redis runs, the next
// batch gathers. Above a few hundred operations a second, a batch lingers for up to 5 ms.
package admission
