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
	"sync"
	"sync/atomic"
	"time"

	"reprise/store"
	"reprise/tasks"
)

type storeSettings struct {
	callers, rounds int
	round           time.Duration
	dir             string
}

// benchStore compares Store.Settle, called by as many goroutines as a worker
// has slots, with the rows it writes put into the same kind of database by
// plain inserts of one writer, as many settlements a transaction as there are
// callers. The share says what idempotency, ordering and group commit cost.
func benchStore(ctx context.Context, args []string, out io.Writer) (err error) {
	var set storeSettings
	flags := newFlags("store", out)
	flags.IntVar(&set.callers, "callers", 32, "goroutines that settle at the same time")
	flags.IntVar(&set.rounds, "rounds", 5, "rounds of each kind, in turn; the median counts")
	flags.DurationVar(&set.round, "round", time.Second, "length of a round")
	flags.StringVar(&set.dir, "dir", os.TempDir(), "where the databases are made: fsync is what is measured, so not a memory disk")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if set.callers < 1 || set.rounds < 1 || set.round <= 0 {
		return errors.New("callers, rounds and round must be positive")
	}
	dir, err := os.MkdirTemp(set.dir, "reprise-bench-")
	if err != nil {
		return fmt.Errorf("make folder for databases: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	var rows [][]string
	var settled, plain, shares []float64
	for n := range set.rounds {
		bare, err := inStore(ctx, dir, fmt.Sprintf("bare-%d", n), set, bareRound)
		if err != nil {
			return err
		}
		settle, err := inStore(ctx, dir, fmt.Sprintf("settle-%d", n), set, settleRound)
		if err != nil {
			return err
		}
		plain, settled, shares = append(plain, bare), append(settled, settle), append(shares, settle/bare)
		rows = append(rows, storeRow(fmt.Sprint(n+1), settle, bare, settle/bare))
	}
	// The share is the median of the rounds' shares: the two halves of a round
	// met the same load on the machine.
	settle, share := median(settled), median(shares)
	rows = append(rows, storeRow("median", settle, median(plain), share))
	if err := printTable(out, []string{"round", "settles/s", "bare inserts/s", "share"}, rows); err != nil {
		return err
	}
	return printFigures(out, struct {
		SettlesPerS float64 `json:"settles_per_s"`
		Share       float64 `json:"share"`
	}{settle, share})
}

func storeRow(name string, settle, bare, share float64) []string {
	return []string{name, fmt.Sprintf("%.0f", settle), fmt.Sprintf("%.0f", bare), fmt.Sprintf("%.2f", share)}
}

// inStore runs one round in a database of its own, so that rounds are alike.
func inStore(ctx context.Context, dir, name string, set storeSettings,
	round func(context.Context, *store.Store, storeSettings) (float64, error)) (rate float64, err error) {
	cfg := store.DefaultConfig()
	cfg.URL = "sqlite:" + filepath.Join(dir, name+".db")
	s, err := store.Open(ctx, cfg)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return round(ctx, s, set)
}

func settleRound(ctx context.Context, s *store.Store, set storeSettings) (float64, error) {
	var done atomic.Int64
	errs := make([]error, set.callers)
	start := time.Now()
	var callers sync.WaitGroup
	for c := range set.callers {
		callers.Go(func() {
			for n := 0; time.Since(start) < set.round && errs[c] == nil; n++ {
				errs[c] = s.Settle(ctx, benchSettlement(fmt.Sprintf("recognize_%d_%d", c, n)))
				done.Add(1)
			}
		})
	}
	callers.Wait()
	return float64(done.Load()) / time.Since(start).Seconds(), errors.Join(errs...)
}

// benchResult is about as long as a recognised song with two providers.
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
