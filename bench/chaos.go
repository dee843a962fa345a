package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"reprise/admission"
	"reprise/internal/auddsim"
	"reprise/internal/timer"
	"reprise/tasks"
)

type chaosSettings struct {
	fleetFlags

	every       time.Duration
	dayUnits    int64
	dir, binary string
}

// newChaos measures what is spent twice while half of the workers are killed repeatedly: at the simulator,
// the units over the day's budget and the requests that it refuses for rate or permits; in Redis, after the
// drain, the permits that were not released.
func newChaos(flags *pflag.FlagSet) measurement {
	var set chaosSettings
	set.add(flags, "how long workers are killed and started")
	flags.DurationVar(&set.every, "every", 5*time.Second, "time between two kills")
	flags.Int64Var(&set.dayUnits, "day-units", 0, "unit budget of the day; 0 = half of what the rate admits during --seconds")
	return func(ctx context.Context, dir string) (_ report, err error) {
		if set.seconds < set.every || set.workers < 2 {
			return report{}, errors.New("--every must be at most --seconds, and --workers at least 2")
		}
		if set.dayUnits == 0 {
			set.dayUnits = int64(set.seconds.Seconds() * setRate / 2)
		}
		set.dir = dir
		if set.binary, err = buildWorker(ctx, dir); err != nil {
			return report{}, err
		}
		found, err := set.run(ctx)
		if err != nil {
			return report{}, err
		}
		figures := map[string]float64{"overspend": float64(found.overspend(set)), "leaked_permits": float64(found.leaked)}
		return report{[]string{"what", "seen", "allowed"}, found.rows(set), figures}, found.stalled()
	}
}

// chaosFound is what the simulator and Redis report after a run.
type chaosFound struct {
	bill       auddsim.Bill
	kills      int
	after      []int // requests admitted between each kill and the next
	leaked     int64
	spentRedis int64 // units that Redis counts as spent or reserved
}

// overspend is the units over the budget plus the requests that the simulator refused for rate or permits.
func (f chaosFound) overspend(set chaosSettings) int64 {
	return max(0, f.bill.Units-set.dayUnits) + f.bill.Refused
}

// stalled is an error if no request was admitted between two kills although the budget was not used up.
func (f chaosFound) stalled() error {
	if i := slices.Index(f.after, 0); i >= 0 {
		return fmt.Errorf("stalled: no request was admitted after kill %d of %d", i+1, f.kills)
	}
	return nil
}

func (f chaosFound) rows(set chaosSettings) [][]string {
	row := func(what string, seen, allowed any) []string {
		return []string{what, fmt.Sprint(seen), fmt.Sprint(allowed)}
	}
	var least any = "the budget was used up"
	if len(f.after) > 0 {
		least = slices.Min(f.after)
	}
	return [][]string{
		row("kills of half of the workers", f.kills, ""),
		row("units billed", f.bill.Units, set.dayUnits),
		row("units used according to Redis", f.spentRedis, set.dayUnits),
		row("requests refused for rate or permits", f.bill.Refused, 0),
		row("most calls in flight", f.bill.MaxConcurrent, simPermits),
		row("least requests between two kills", least, "more than 0"),
		row("permits left after the drain", f.leaked, 0),
	}
}

func (set chaosSettings) run(ctx context.Context) (found chaosFound, err error) {
	r, err := startLimitedRig(ctx, set.dir, int(set.seconds.Seconds()*simRate*1.5)+500, 0)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	day := time.Now().UTC().Format(time.DateOnly)
	f := r.fleet(set.binary, append([]string{recognizeSlots(set.slots), fmt.Sprintf("REPRISE_LIMITS_RECOGNIZE_UNITS_PER_DAY=%d", set.dayUnits)}, knownLimits...)...)
	defer func() { f.kill(len(f.workers)) }()
	if err := f.start(set.workers); err != nil {
		return found, err
	}
	if err := set.kills(ctx, f, r.sim, &found); err != nil {
		return found, err
	}
	if err := f.stop(); err != nil {
		return found, err
	}
	if time.Now().UTC().Format(time.DateOnly) != day {
		return found, errors.New("the day of the budget (UTC) ended during the run; run the case again")
	}
	// Permits of killed workers end.
	if err := timer.Wait(ctx, admission.DefaultConfig().PermitTTL+time.Second); err != nil {
		return found, err
	}
	found.bill = r.sim.Sums()
	return found, found.readGates(ctx, r.redis.rdb)
}

// kills waits for the first call. Then it repeatedly kills half of the workers and starts as many new ones.
func (set chaosSettings) kills(ctx context.Context, f *fleet, sim *auddsim.Server, found *chaosFound) error {
	if err := until(ctx, time.Minute, func() bool { return sim.Sums().Units > 0 }); err != nil {
		return errors.Join(fmt.Errorf("wait for the first call: %w", err), f.died())
	}
	next := time.Now()
	for range int(set.seconds / set.every) {
		next = next.Add(set.every)
		if err := timer.Wait(ctx, time.Until(next)); err != nil {
			return err
		}
		if err := f.died(); err != nil {
			return err
		}
		f.kill(set.workers / 2)
		found.kills++
		before := admitted(sim.Sums())
		if err := f.start(set.workers / 2); err != nil {
			return err
		}
		if err := timer.Wait(ctx, time.Until(next.Add(set.every))-50*time.Millisecond); err != nil {
			return err
		}
		// With budget for the calls in flight only, the budget stops the workers.
		if sim.Sums().Units < set.dayUnits-2*simPermits {
			found.after = append(found.after, int(admitted(sim.Sums())-before))
		}
	}
	return nil
}

// readGates reads how many permits and units are in use in Redis. It acquires and releases one permit first,
// because an acquire removes permits that have ended.
func (f *chaosFound) readGates(ctx context.Context, rdb *redis.Client) error {
	gates, err := admission.New(rdb, admission.DefaultConfig())
	if err != nil {
		return err
	}
	permit, err := gates.Acquire(ctx, admission.Request{Key: "enterprise_bench", AttemptID: "bench", Path: tasks.Enterprise})
	if err != nil {
		return fmt.Errorf("acquire a permit after the drain: %w", err)
	}
	if err := gates.Settle(ctx, permit, admission.CallReport{Outcome: tasks.Interrupted, Channel: tasks.ChannelNone}); err != nil {
		return fmt.Errorf("release a permit after the drain: %w", err)
	}
	state, err := gates.State(ctx)
	if err != nil {
		return fmt.Errorf("read the gates after the drain: %w", err)
	}
	f.leaked = state.InFlight
	for _, source := range state.Sources {
		f.leaked = max(f.leaked, source.InFlight)
		if source.Path == tasks.Recognize {
			for _, budget := range source.Budgets {
				f.spentRedis += budget.Spent + budget.Reserved
			}
		}
	}
	return gates.Close()
}
