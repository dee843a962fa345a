package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"reprise/admission"
	"reprise/internal/auddsim"
	"reprise/tasks"
)

// permitWatch looks at the permits in Redis while workers die. A permit ends
// at its score unless its holder, alive, renews it: so the permits of the dead
// are back within their time if no score is ever farther ahead than that time
// and none stays long past it.
type permitWatch struct {
	end              context.CancelFunc
	done             sync.WaitGroup
	busy             func() bool // somebody asks admission, which is what takes ended permits back
	slowest, longest time.Duration
}

const permitKey = admission.DefaultPrefix + "permits"

func watchPermits(ctx context.Context, rdb *redis.Client, busy func() bool) *permitWatch {
	ctx, end := context.WithCancel(ctx)
	w := &permitWatch{end: end, busy: busy}
	w.done.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.look(ctx, rdb)
			}
		}
	})
	return w
}

// look misses a look when Redis does not answer; the next one sees the same.
func (w *permitWatch) look(ctx context.Context, rdb *redis.Client) {
	ends, err := rdb.ZRangeWithScores(ctx, permitKey, 0, -1).Result()
	if err != nil || len(ends) == 0 {
		return
	}
	now, err := rdb.Time(ctx).Result()
	if err != nil {
		return
	}
	at := float64(now.UnixMilli())
	past := time.Duration(at-ends[0].Score) * time.Millisecond
	left := time.Duration(ends[len(ends)-1].Score-at) * time.Millisecond
	w.longest = max(w.longest, left)
	if w.busy() {
		w.slowest = max(w.slowest, past)
	}
}

// stop ends the watch and tells what it saw; it may be called twice.
func (w *permitWatch) stop() (slowest, longest time.Duration) {
	w.end()
	w.done.Wait()
	return w.slowest, w.longest
}

// afterwards waits until the last permit of the dead has ended, lets admission
// look once (which is how ended permits are taken back), and counts what is
// left: permits, and calls in flight by the counters of every gate.
func (f *chaosFound) afterwards(ctx context.Context, server *benchRedis, sim *auddsim.Server) error {
	if err := pause(ctx, permitTTL+time.Second); err != nil {
		return err
	}
	if err := askOnce(ctx, server.rdb); err != nil {
		return err
	}
	f.bill = sim.Sums()
	left, err := server.rdb.ZCard(ctx, permitKey).Result()
	if err != nil {
		return fmt.Errorf("count permits: %w", err)
	}
	for _, gate := range []string{"state:global", "state:main:recognize"} {
		n, err := counter(ctx, server.rdb, gate, "in_flight")
		if err != nil {
			return err
		}
		left = max(left, n)
	}
	f.leaked = left
	budget := "budget:main:recognize:" + time.Now().UTC().Format(time.DateOnly)
	for _, field := range []string{"spent", "reserved"} {
		n, err := counter(ctx, server.rdb, budget, field)
		if err != nil {
			return err
		}
		f.spentRedis += n
	}
	return nil
}

func counter(ctx context.Context, rdb *redis.Client, key, field string) (int64, error) {
	text, err := rdb.HGet(ctx, admission.DefaultPrefix+key, field).Result()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read %s of %s: %w", field, key, err)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s of %s: %w", field, key, err)
	}
	return n, nil
}

// askOnce asks for a call on a path nothing runs on and gives it back.
func askOnce(ctx context.Context, rdb *redis.Client) error {
	cfg := admission.DefaultConfig()
	gates, err := admission.New(rdb, cfg)
	if err != nil {
		return err
	}
	permit, err := gates.Acquire(ctx, admission.Request{Key: "enterprise_bench", AttemptID: "bench", Path: tasks.Enterprise})
	if err != nil {
		return fmt.Errorf("ask admission after the drain: %w", err)
	}
	err = gates.Settle(ctx, permit, admission.CallReport{Outcome: tasks.Interrupted, Channel: tasks.ChannelNone})
	if err != nil {
		return fmt.Errorf("give a permit back after the drain: %w", err)
	}
	return gates.Close()
}
