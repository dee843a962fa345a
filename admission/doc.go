// Package admission decides which AudD call may go now, for any number of workers
// together, so that limits are used up and never exceeded. Every decision is one Lua
// script in Redis, whose clock is the only one; a call takes something from every gate
// or from none.
//
// # The life of a call
//
//	Acquire ──► Permit ──► Valid, right before the first body byte ──► the call ──► Settle
//	   │                     (renewed every 3 s by Run)
//	   ├─► Refusal: the gate that refused, and when to ask again ──► Wait ──► Acquire
//	   ├─► InFlight: another attempt of this task holds a permit
//	   ├─► MissingPeriods: a unit budget must be seeded from the call rows first (Seed)
//	   └─► ErrUnavailable: no decision. No permit, no attempt counted
//
// Acquire and Settle carry an attempt id that the caller made. Repeating either changes
// nothing, so an operation whose reply was lost is sent again. A task is never in flight
// twice. The most that an attempt may cost is charged when it is admitted and corrected
// when it is settled: the attempt of a worker that dies stays charged, and the next
// Acquire of the task returns it as Permit.Lost. A permit lives 12 s without renewal and
// is trusted for 10.
//
// # The gates
//
// In the order they are asked, per source and path where nothing else is said:
//
//	throttle            AudD answered 429 (until its Retry-After, without one for about a call's latency) or 611. A
//	                    shorter one does not shorten it, and no resume ends it
//	halt                an account answer or an operator. Quota and subscription are probed each hour, blocks that may pass
//	                    every 5 min; a token that AudD has not refused ends a halt for authentication; Resume ends all of
//	                    them through a half-open probe
//	breaker             5 failures in a row without evidence of health; after the cooldown one call is the half-open probe
//	concurrency         permits: configured, and learned below that (AIMD)
//	global_concurrency  permits over all sources and paths
//	group_concurrency   a group's share of the permits of the source+path
//	group_requests      a group's share of its request rate
//	requests, units     rates, smooth (GCRA): configured, and for requests learned
//	global_requests, global_units
//	units_day, units_month, then the same of global_ and group_: unit budgets per calendar day and budget month
//
// A rate may promise a start up to 50 ms ahead, which Acquire waits for, so that callers
// that come a little late leave no part of the rate unused. A refused caller gets a place
// of its own in time, and Wait keeps the order within a process.
//
// # What is learned
//
// Eight calls of a new source+path may be in flight. The number doubles per round until
// AudD throttles, then follows AIMD: it is cut by 15 % per congestion event (by half when
// throttles persist), grows fast up to just below the last cut, and slowly near it.
// A concurrency cannot express a rate, so a request rate is learned beside it in the same
// way. Only a limit that is reached grows.
//
// # Limits
//
// Limits live in Redis with a revision. Config only seeds them; SetLimits changes them for
// all workers at once. Redis without limits admits nothing. After Redis lost its data a
// recovery hold of a few seconds admits nothing on a unit budget, until the calls in
// flight have been registered again by their renewal: no call row has them yet, and the
// units they reserve would be given away twice.
//
// # Where things are
//
// keys.go documents every key and field in Redis. The scripts are in lua/, each with its
// request and reply on top; scripts.go lists the parts of each. One process sends its
// operations in batches (batch.go): while one call to Redis is under way the next batch
// gathers, and above a few hundred operations a second it lingers up to 5 ms.
package admission
