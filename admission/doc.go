// Package admission decides which AudD call may go now, for any number of
// workers at once, so that the quota is used to the last per cent and never
// exceeded. Every decision is one Lua script in Redis, whose clock is the only
// one; everything is taken together or nothing is.
//
// # The life of a call
//
//	Acquire ──► Permit ──► Valid, right before the first body byte ──► the call ──► Settle
//	   │                     (renewed every 3 s while it lives, by Run)
//	   ├─► Refusal: the gate that said no, and when to come back ──► Wait ──► Acquire
//	   ├─► InFlight: another attempt of this task holds a permit
//	   ├─► MissingPeriods: a unit budget must be seeded from the call rows first (Seed)
//	   └─► ErrUnavailable: Redis gave no answer. No permit, no attempt counted
//
// Acquire and Settle carry an attempt id the caller made. Repeating either
// changes nothing, so a lost reply is simply asked for again. A task is never
// in flight twice. What an attempt may cost is charged when it is admitted and
// corrected when it is settled: a worker that dies has paid already, and the
// next Acquire of its task says so (Permit.Lost). Permits live 12 s without
// renewal and are trusted for 10.
//
// # The gates
//
// In the order they are asked, per source and path unless it says otherwise:
//
//	throttle            AudD said 429 (until its Retry-After; without one for about a call's latency) or 611. A later, shorter one
//	                    never shortens; no resume ends it
//	halt                an account answer or a person. Quota and subscription are probed each hour, passing blocks every 5 min, a dead
//	                    token is lifted by a token not refused yet, everything by Resume, which lets one probe through
//	breaker             5 failures in a row without evidence of health. After the cooldown one permit is the probe
//	concurrency         permits: configured, and learned below that (AIMD)
//	global_concurrency  permits over everything
//	group_concurrency   a group's share of the permits of the source+path
//	group_requests      a group's share of its rate
//	requests, units     rates, smooth (GCRA): configured, and learned
//	global_requests, global_units
//	units_day, units_month, then the same global_ and group_: calendar budgets in a time zone, with an anchor day for the month
//
// A rate may promise a start up to 50 ms ahead, which Acquire waits for: that
// way callers that come a little late cost no rate. Whoever is refused gets a
// place of its own in time, and Wait keeps the order within a process.
//
// # What is learned
//
// Nothing is known of an account at first. Eight calls may be in flight; the
// number doubles per round until AudD throttles, then follows AIMD: a cut of
// 15 % per congestion event (of a half when they persist), fast growth up to
// just below the last cut, slow growth near it. A number of permits cannot
// express a rate, so a request rate is learned beside it in the same manner.
// Only a limit that is reached grows.
//
// # Sources
//
// A task may run on any source that is not excluded, pinned away or shut. The
// default compares two random ones by success average and load; after two
// failures of a task in a row its source goes last. All shut: Refusal.NoSource
// and the earliest reopening, for which the worker closes the path (Pauses).
//
// # Limits
//
// Limits live in Redis with a revision; Config only seeds them, SetLimits
// changes them for all workers at once. Redis without limits admits nothing.
// After Redis lost everything nothing is admitted on a unit budget for a few
// seconds, until the calls under way have been registered again by their
// renewal: no call row has them yet, and what they reserve would be given away.
//
// # Round trips
//
// The operations of one process are gathered into one script call while
// another is under way, and, above a few hundred a second, for up to 5 ms.
//
// keys.go lists every key. The scripts are in lua/, each with its contract on
// top; parts that several scripts share say so in their first line.
package admission
