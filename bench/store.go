package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"reprise/store"
	"reprise/tasks"
)

type storeSettings struct {
	callers, rounds int
	round           time.Duration
}

// newStore compares Store.Settle, called by as many goroutines as a worker has slots, with plain inserts of
// the same rows by one writer that puts one settlement per caller into a transaction. The share shows the
// cost of idempotency, ordering and group commit. The case measures fsync, so --dir must not be on a memory
// disk.
func newStore(flags *pflag.FlagSet) measurement {
	var set storeSettings
	flags.IntVar(&set.callers, "callers", 32, "goroutines that settle at the same time")
	flags.IntVar(&set.rounds, "rounds", 5, "rounds; the figures are medians")
	flags.DurationVar(&set.round, "round", time.Second, "how long each side of a round is measured")
	return func(ctx context.Context, dir string) (report, error) {
		result, err := compare(set.rounds,
			func() (pace, error) { return set.inStore(ctx, dir, settleRound) },
			func() (pace, error) { return set.inStore(ctx, dir, bareRound) })
		if err != nil {
			return report{}, err
		}
		settle, _, share := result.medians()
		return report{
			header:  []string{"round", "settles/s", "bare inserts/s", "share"},
			rows:    result.table(),
			figures: map[string]float64{"settles_per_s": settle, "share": share},
		}, nil
	}
}

// inStore measures one side in a new database in dir.
func (set storeSettings) inStore(ctx context.Context, dir string,
	side func(context.Context, *store.Store, storeSettings) (settled int, err error)) (p pace, err error) {
	folder, err := os.MkdirTemp(dir, "store-")
	if err != nil {
		return p, fmt.Errorf("make the folder of a database: %w", err)
	}
	cfg := store.DefaultConfig()
	cfg.URL = "sqlite:" + filepath.Join(folder, "bench.db")
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

// bareInserts write the rows of one finished task in the store's own schema.
var bareInserts = []string{
	`INSERT INTO task (key, path, queue, payload, finished, verdict, outcome, created_at, attempted_at, updated_at, finished_at)
	 VALUES (?1, 'recognize', 'recognize', '{"v":1}', TRUE, 'done', 'match', ?2, ?2, ?2, ?2)`,
	`INSERT INTO result (key, generation, attempt_id, verdict, outcome, body, finished_at)
	 VALUES (?1, 0, ?1 || '.1', 'done', 'match', ?3, ?2)`,
	`INSERT INTO call (attempt_id, key, generation, source, path, queue, outcome, verdict, http_status, phase,
	        latency_us, units, unit_basis, price, cost, at)
	 VALUES (?1 || '.1', ?1, 0, 'main', 'recognize', 'recognize', 'match', 'done', 200, 'answered',
	        800000, 1, 'estimated', 0.005, 0.005, ?2)`,
}

// bareRound measures the upper limit: one writer, prepared inserts, full transactions.
func bareRound(ctx context.Context, s *store.Store, set storeSettings) (int, error) {
	var inserts []*sql.Stmt
	for _, query := range bareInserts {
		stmt, err := s.DB().PrepareContext(ctx, query)
		if err != nil {
			return 0, fmt.Errorf("prepare bare insert: %w", err)
		}
		defer stmt.Close()
		inserts = append(inserts, stmt)
	}
	start, done := time.Now(), 0
	for time.Since(start) < set.round {
		if err := bareTransaction(ctx, s.DB(), inserts, done, set.callers); err != nil {
			return done, err
		}
		done += set.callers
	}
	return done, nil
}

func bareTransaction(ctx context.Context, db *sql.DB, inserts []*sql.Stmt, from, count int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // no effect after the commit
	inserts = slices.Clone(inserts)
	for i, stmt := range inserts {
		inserts[i] = tx.StmtContext(ctx, stmt) // ends with the transaction
	}
	for n := from; n < from+count; n++ {
		key, at := fmt.Sprintf("recognize_%d", n), time.Now().UnixMilli()
		for i, stmt := range inserts {
			args := []any{key, at, string(benchResult)}
			if i != 1 { // only the result row has a body
				args = args[:2]
			}
			if _, err := stmt.ExecContext(ctx, args...); err != nil {
				return fmt.Errorf("insert row %d of %s: %w", i, key, err)
			}
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
