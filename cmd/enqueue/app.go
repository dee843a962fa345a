package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"reprise/idempotency"
	"reprise/intake"
	"reprise/internal/redisconn"
	"reprise/internal/settings"
	"reprise/store"
)

// config is the part of the settings that enqueuing needs.
type config struct {
	// Data is the folder where worker dev leaves its addresses; default .reprise.
	Data  string         `mapstructure:"data"`
	Redis settings.Redis `mapstructure:"redis"`
	Store settings.Store `mapstructure:"store"`
	// Price of 1,000 units in dollars; 0 = unknown.
	Price float64 `mapstructure:"price_per_1000"`
}

// app is what every command shares.
type app struct {
	environ []string // as os.Environ gives it
	getenv  func(string) string
	std     stdio
	bound   map[string]*pflag.Flag

	file              string
	force, dryRun     bool
	json, wait, quiet bool
	group             string
	yes               bool // upload: asked already
	uploads           bool // the upload ledger is needed
	cfg               config
}

// flags adds the flags of every command.
func (a *app) flags(fs *pflag.FlagSet) {
	fs.StringVar(&a.file, "config", "", "settings file (YAML; REPRISE_CONFIG)")
	fs.String("redis", "", "Redis of the queue, redis://, rediss:// or unix:// (REPRISE_REDIS_URL; default: worker dev's)")
	fs.String("store", "", "store of results, sqlite:PATH (REPRISE_STORE_URL; default: worker dev's, else in the data folder)")
	fs.String("data", settings.DefaultData, "data folder of worker dev (REPRISE_DATA)")
	fs.Float64("price-per-1000", 0, "price of 1,000 units in dollars, to show money (REPRISE_PRICE_PER_1000)")
	fs.StringVar(&a.group, "group", "", "customer or purpose whose queue and budget it goes to, as settings or inspect group name it")
	fs.BoolVar(&a.force, "force", false, "pay again for what is settled, also for what failed for good")
	fs.BoolVar(&a.dryRun, "dry-run", false, "say what would be queued and what it costs at most; costs nothing")
	fs.BoolVar(&a.json, "json", false, "print one JSON object instead of text")
	fs.BoolVar(&a.wait, "wait", false, "wait for the results and print them")
	fs.BoolVar(&a.quiet, "quiet", false, "no progress")
	a.bound = map[string]*pflag.Flag{
		"redis.url": fs.Lookup("redis"), "store.url": fs.Lookup("store"), "data": fs.Lookup("data"), "price_per_1000": fs.Lookup("price-per-1000"),
	}
}

// load reads the settings. Other commands share the file, so their keys are
// ignored here.
func (a *app) load() error {
	a.cfg = config{Data: settings.DefaultData}
	warnings, err := settings.Load(&a.cfg, settings.Source{File: a.file, Getenv: a.getenv, Flags: a.bound, Shared: true})
	if err == nil {
		err = settings.UnknownVariables(&a.cfg, a.environ, true)
	}
	if err != nil {
		return &failure{exitUsage, err}
	}
	for _, w := range warnings {
		fmt.Fprintf(a.std.err, "enqueue: %s\n", w)
	}
	if a.cfg.Price < 0 || math.IsInf(a.cfg.Price, 0) {
		return &failure{exitUsage, errors.New("price_per_1000: want 0 or more")}
	}
	return nil
}

// session is an open intake.
type session struct {
	intake *intake.Intake
	close  func()
}

// open connects to store and Redis. A dry run goes without Redis if it must.
func (a *app) open(ctx context.Context) (*session, error) {
	redisURL, storeURL, err := a.addresses()
	if err != nil && !a.dryRun {
		return nil, &failure{exitUsage, err}
	}
	if err := a.cfg.Store.CheckFolder(); err != nil {
		return nil, &failure{exitUsage, err}
	}
	opts := intake.Options{Stdin: a.std.in}
	s := &session{close: func() {}}
	if redisURL != "" {
		err := redisconn.Ping(ctx, redisURL)
		switch {
		case errors.Is(err, redisconn.ErrURL):
			return nil, &failure{exitUsage, err}
		case err != nil && !a.dryRun:
			return nil, &failure{exitNone, a.cfg.Redis.Reaching(err)}
		case err == nil:
			rdb, err := redisconn.Queue(redisURL, 16)
			if err != nil {
				return nil, &failure{exitUsage, err}
			}
			opts.Redis = rdb
			// Nothing is left to do on the connections when they are closed.
			s.close = func() { _ = rdb.Close() }
		}
	}
	storeConfig := store.DefaultConfig()
	storeConfig.URL = storeURL
	st, err := store.Open(ctx, storeConfig)
	if err != nil {
		s.close()
		return nil, &failure{exitNone, err}
	}
	closeRedis := s.close
	s.close = func() {
		closeRedis()
		if err := st.Close(); err != nil {
			fmt.Fprintf(a.std.err, "enqueue: %s\n", err.Error())
		}
	}
	opts.Store = st
	if a.uploads {
		if opts.Ledger, err = idempotency.New(ctx, st.DB(), idempotency.DefaultConfig()); err != nil {
			s.close()
			return nil, &failure{exitNone, err}
		}
	}
	if s.intake, err = intake.New(opts); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// addresses finds Redis and the store: as set, else where worker dev runs.
func (a *app) addresses() (redisURL, storeURL string, err error) {
	redisURL, storeURL = a.cfg.Redis.URL, a.cfg.Store.URL
	if redisURL == "" {
		var dev settings.Addresses
		if dev, err = settings.ReadAddresses(a.cfg.Data); err == nil {
			redisURL = dev.Redis
			if storeURL == "" {
				storeURL = dev.Store
			}
		}
	}
	if storeURL == "" {
		storeURL = "sqlite:" + filepath.Join(a.cfg.Data, "reprise.db")
	}
	return redisURL, storeURL, err
}

// terminal reports whether w is one.
func terminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
