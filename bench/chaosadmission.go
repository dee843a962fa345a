package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"reprise/internal/auddsim"
)

type chaosSettings struct {
	seconds, every time.Duration
	workers, slots int
	dayUnits       int64
	keep           bool

	dir, binary string
}

// budgetLeft tells whether there is budget for more than the calls in flight.
func (set chaosSettings) budgetLeft(sim *auddsim.Server) bool {
	return sim.Sums().Units < set.dayUnits-2*simPermits
}

// permitTTL is how long a permit lives that nobody renews (admission's default).
const permitTTL = 12 * time.Second

// benchChaosAdmission kills half the workers with SIGKILL again and again and
// counts, at the simulator, whether what died with them was spent twice: units
// over the day's budget, requests over the rate or over the permits (the
// simulator refuses both), and afterwards permits nobody gave back.
func benchChaosAdmission(ctx context.Context, args []string, out io.Writer) (err error) {
	var set chaosSettings
	flags := newFlags("chaos-admission", out)
	flags.DurationVar(&set.seconds, "seconds", time.Minute, "how long workers are killed")
	flags.DurationVar(&set.every, "every", 5*time.Second, "time between two kills")
	flags.IntVar(&set.workers, "workers", 8, "worker processes, half of which are killed")
	flags.IntVar(&set.slots, "slots", 16, "tasks a worker process works on at once")
	flags.Int64Var(&set.dayUnits, "day-units", 0, "unit budget of the day; 0 = half of what the rate lets pass in that time")
	flags.BoolVar(&set.keep, "keep", false, "keep the folder with the workers' logs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if set.every <= 0 || set.seconds < set.every || set.workers < 2 || set.slots < 1 {
		return errors.New("every must be positive and at most seconds, workers at least 2, slots positive")
	}
	if set.dayUnits == 0 {
		set.dayUnits = int64(set.seconds.Seconds() * setRate / 2)
	}
	if set.dir, err = os.MkdirTemp("", "reprise-bench-"); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if set.keep {
		fmt.Fprintln(out, "logs are kept in", set.dir)
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(set.dir)) }()
	}
	if set.binary, err = buildWorker(ctx, set.dir); err != nil {
		return err
	}
	found, err := chaosRun(ctx, set)
	if err != nil {
		return err
	}
	if err := printTable(out, []string{"what", "seen", "allowed"}, found.rows(set)); err != nil {
		return err
	}
	if err := found.wedged(); err != nil {
		return err
	}
	return printFigures(out, struct {
		Overspend     int64 `json:"overspend"`
		LeakedPermits int64 `json:"leaked_permits"`
	}{found.overspend(set), found.leaked})
}

// chaosFound is what the simulator and Redis say afterwards.
type chaosFound struct {
	bill       auddsim.Bill
	kills      int
	after      []int         // requests admitted between each kill and the next
	slowest    time.Duration // longest a permit stood in Redis past its end while others asked
	longest    time.Duration // most a permit had left to live
	leaked     int64
	spentRedis int64 // what Redis has as spent and reserved
}

// overspend is all that was spent over what was allowed: units over the budget
// and requests that the simulator refused for rate or permits.
func (f chaosFound) overspend(set chaosSettings) int64 {
	return max(0, f.bill.Units-set.dayUnits) + f.bill.Refused
}

// wedged fails when nothing passed between two kills although there was budget.
func (f chaosFound) wedged() error {
	for i, n := range f.after {
		if n == 0 {
			return fmt.Errorf("wedged: nothing passed after kill %d of %d", i+1, f.kills)
		}
	}
	return nil
}

func (f chaosFound) rows(set chaosSettings) [][]string {
	least := 0
	for i, n := range f.after {
		if i == 0 || n < least {
			least = n
		}
	}
	row := func(what string, seen, allowed any) []string {
		return []string{what, fmt.Sprint(seen), fmt.Sprint(allowed)}
	}
	return [][]string{
		row("kills of half the workers", f.kills, ""),
		row("units billed", f.bill.Units, set.dayUnits),
		row("units Redis has as used", f.spentRedis, set.dayUnits),
		row("requests refused for rate or permits", f.bill.Refused, 0),
		row("most calls in flight", f.bill.MaxConcurrent, simPermits),
		row("least requests between two kills", least, "more than 0"),
		row("most a permit had to live, ms", f.longest.Milliseconds(), permitTTL.Milliseconds()),
		row("longest a permit stood past its end, ms", f.slowest.Milliseconds(), ""),
		row("permits left after the drain", f.leaked, 0),
	}
}

func chaosRun(ctx context.Context, set chaosSettings) (found chaosFound, err error) {
	server, err := startRedis(ctx, set.dir)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	sim, err := auddsim.Listen(ctx, "127.0.0.1:0", auddsim.Config{Limits: auddsim.Limits{
		Rate: simRate, Burst: simBurst, Concurrency: simPermits, Latency: simLatency, Jitter: simJitter,
	}})
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, sim.Close()) }()
	payloads, err := clipPayloads(set.dir, int(set.seconds.Seconds()*simRate*1.5)+500)
	if err != nil {
		return found, err
	}
	if err := server.enqueue(ctx, "", payloads); err != nil {
		return found, err
	}
	day := time.Now().UTC().Format(time.DateOnly)
	f := newFleet(fleetSettings{
		dir: set.dir, binary: set.binary, redisURL: server.url, simURL: sim.URL, slots: set.slots,
		more: append([]string{fmt.Sprintf("REPRISE_LIMITS_RECOGNIZE_UNITS_PER_DAY=%d", set.dayUnits)}, knownLimits...),
	})
	defer func() { f.kill(len(f.workers)) }()
	if err := f.start(set.workers); err != nil {
		return found, err
	}
	watch := watchPermits(ctx, server.rdb, func() bool { return set.budgetLeft(sim) })
	defer watch.stop()
	if err := chaosKills(ctx, set, f, sim, &found); err != nil {
		return found, err
	}
	if err := f.stop(); err != nil {
		return found, err
	}
	if time.Now().UTC().Format(time.DateOnly) != day {
		return found, errors.New("the day of the budget (UTC) ended during the run: run it again")
	}
	found.slowest, found.longest = watch.stop()
	return found, found.afterwards(ctx, server, sim)
}

// chaosKills waits for the first call, then kills half the workers every few
// seconds and starts as many anew.
func chaosKills(ctx context.Context, set chaosSettings, f *fleet, sim *auddsim.Server, found *chaosFound) error {
	started := func() int64 { b := sim.Sums(); return b.Requests + b.Active - b.Refused }
	if err := until(ctx, time.Minute, func() bool { return sim.Sums().Units > 0 }); err != nil {
		return errors.Join(fmt.Errorf("wait for the first call: %w", err), f.died())
	}
	next := time.Now()
	for range int(set.seconds / set.every) {
		next = next.Add(set.every)
		if err := pause(ctx, time.Until(next)); err != nil {
			return err
		}
		if err := f.died(); err != nil {
			return err
		}
		f.kill(set.workers / 2)
		found.kills++
		before := started()
		if err := f.start(set.workers / 2); err != nil {
			return err
		}
		if err := pause(ctx, time.Until(next.Add(set.every))-50*time.Millisecond); err != nil {
			return err
		}
		if set.budgetLeft(sim) { // else the budget, not a wedge, stops them
			found.after = append(found.after, int(started()-before))
		}
	}
	return nil
}
