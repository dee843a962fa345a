package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"reprise/store"
	"reprise/tasks"
)

type storeSettings struct {
	callers, rounds int
	round           time.Duration
}

// benchStore compares Store.Settle, called by as many goroutines as a worker has
// slots, with plain inserts of the same rows by one writer, as many settlements
// per transaction as there are callers. The share shows the cost of idempotency,
// ordering and group commit.
func benchStore(ctx context.Context, args []string, out io.Writer) error {
	var set storeSettings
	flags := newFlags("store", out)
	flags.IntVar(&set.callers, "callers", 32, "goroutines that settle at the same time")
	flags.IntVar(&set.rounds, "rounds", 5, "rounds; the figures are medians")
	flags.DurationVar(&set.round, "round", time.Second, "how long each side of a round is measured")
	dir := flags.String("dir", os.TempDir(), "folder for the databases, not on a memory disk: the case measures fsync")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if set.callers < 1 || set.rounds < 1 || set.round <= 0 {
		return errors.New("callers, rounds and round must be positive")
	}
	return inFolder(*dir, func(dir string) error {
		var result comparison
		for n := range set.rounds {
			settle := func() (pace, error) {
				return set.inStore(ctx, filepath.Join(dir, fmt.Sprintf("settle-%d.db", n)), settleRound)
			}
			bare := func() (pace, error) {
				return set.inStore(ctx, filepath.Join(dir, fmt.Sprintf("bare-%d.db", n)), bareRound)
			}
			if err := result.round(settle, bare); err != nil {
				return err
			}
		}
		if err := printTable(out, []string{"round", "settles/s", "bare inserts/s", "share"}, result.table()); err != nil {
			return err
		}
		settle, _, share := result.medians()
		return printFigures(out, struct {
			SettlesPerS float64 `json:"settles_per_s"`
			Share       float64 `json:"share"`
		}{settle, share})
	})
}

// inStore measures one side in a new database.
func (set storeSettings) inStore(ctx context.Context, path string,
	side func(context.Context, *store.Store, storeSettings) (settled int, err error)) (p pace, err error) {
	cfg := store.DefaultConfig()
	cfg.URL = "sqlite:" + path
	s, err := store.Open(ctx, cfg)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	start := time.Now()
	settled, err := side(ctx, s, set)
	return pace{perS: float64(settled) / time.Since(start).Seconds()}, err
}

func settleRound(ctx context.Context, s *store.Store, set storeSettings) (int, error) {
	var done atomic.Int64
	start := time.Now()
	var callers errgroup.Group
	for c := range set.callers {
		callers.Go(func() error {
			for n := 0; time.Since(start) < set.round; n++ {
				if err := s.Settle(ctx, benchSettlement(fmt.Sprintf("recognize_%d_%d", c, n))); err != nil {
					return err
				}
				done.Add(1)
			}
			return nil
		})
	}
	err := callers.Wait()
	return int(done.Load()), err
}

// benchResult is about as long as a recognized song with two providers.
var benchResult = json.RawMessage(`{"artist":"The Artist","title":"The Title","album":"The Album","timecode":"00:42",` +
	`"song_link":"https://lis.tn/abcdef","providers":"` + strings.Repeat("0123456789", 60) + `"}`)

func benchSettlement(key string) store.Settlement {
	now := time.Now()
	price := 0.005
	return store.Settlement{
		Key: key, Path: tasks.Recognize, Queue: string(tasks.Recognize), Payload: []byte(`{"v":1}`),
		Finished: true, Verdict: tasks.Done, Outcome: tasks.Match, Result: benchResult, At: now,
		Call: &store.Call{
			AttemptID: key + ".1", Key: key, Source: "main", Path: tasks.Recognize,
			Outcome: tasks.Match, Verdict: tasks.Done, HTTPStatus: 200, Phase: "answered",
			Latency: 800 * time.Millisecond, Units: 1, UnitBasis: "estimated", Price: &price, Cost: &price, At: now,
		},
	}
}
