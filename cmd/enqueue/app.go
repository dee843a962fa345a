package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"reprise/idempotency"
	"reprise/intake"
	"reprise/internal/cli"
	"reprise/internal/redisconn"
	"reprise/store"
	"reprise/store/identity"
	"reprise/tasks"
)

// app is the state that the sub-commands share.
type app struct {
	*cli.Process
	*cli.Printer
	set *pflag.FlagSet // the flags of every sub-command

	force, dryRun     bool
	json, wait, quiet bool
	group             string
	yes               bool // of upload: do not ask before an upload is billed again
	cfg               config
}

// config is the part of the settings that enqueue needs.
type config struct {
	cli.Connection `mapstructure:",squash"`
}

func (a *app) addFlags(f *pflag.FlagSet) {
	a.set = f
	cli.AddConnectionFlags(f)
	f.StringVar(&a.group, "group", "", "group whose queue and budget the tasks use, as named in the settings")
	f.BoolVar(&a.force, "force", false, "call AudD again for inputs that are done or failed permanently")
	f.BoolVar(&a.dryRun, "dry-run", false, "show what would be queued and the maximum units, and queue nothing")
	f.BoolVar(&a.json, "json", false, "print one JSON object instead of text")
	f.BoolVar(&a.wait, "wait", false, "wait for the results and print them")
	f.BoolVar(&a.quiet, "quiet", false, "show no progress")
}

// open connects to the store and Redis. A dry run continues without Redis if Redis cannot be reached.
func (a *app) open(ctx context.Context, path tasks.Path) (in *intake.Intake, closeAll func() error, err error) {
	redisURL, storeURL, err := a.cfg.Addresses()
	if err != nil && !a.dryRun {
		return nil, nil, err
	}
	if err := (store.Config{URL: a.cfg.Store.URL}).CheckFolder(); err != nil {
		return nil, nil, cli.WithCode(cli.Usage, err)
	}
	opts := intake.Options{Stdin: a.In}
	closeRedis, err := a.openRedis(ctx, redisURL, &opts)
	if err != nil {
		return nil, nil, err
	}
	if opts.Store, opts.Ledger, err = openStore(ctx, storeURL, path == tasks.Upload); err != nil {
		closeRedis()
		return nil, nil, err
	}
	closeAll = func() error {
		if opts.Redis != nil && !a.dryRun { // workers remember later transactions, too
			rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rememberTimeout)
			_ = identity.Claim(rctx, opts.Redis, store.MarksOf(opts.Store))
			cancel()
		}
		closeRedis()
		return opts.Store.Close()
	}
	if err := a.checkStore(ctx, opts); err != nil {
		return nil, nil, errors.Join(err, closeAll())
	}
	if in, err = intake.New(opts); err != nil {
		return nil, nil, errors.Join(err, closeAll())
	}
	return in, closeAll, nil
}

// rememberTimeout bounds the last note to Redis about the store.
const rememberTimeout = 2 * time.Second

// checkStore refuses a store that is not the one the queue belongs to.
func (a *app) checkStore(ctx context.Context, opts intake.Options) error {
	switch {
	case opts.Redis == nil:
		return nil
	case a.dryRun:
		return identity.Check(ctx, opts.Redis, store.MarksOf(opts.Store))
	}
	return identity.Claim(ctx, opts.Redis, store.MarksOf(opts.Store))
}

// openRedis sets opts.Redis, unless a dry run cannot reach Redis.
func (a *app) openRedis(ctx context.Context, url string, opts *intake.Options) (closeRedis func(), err error) {
	without := func() {}
	if url == "" { // only a dry run may have none
		return without, nil
	}
	if err := a.cfg.Ping(ctx, url, cli.None); a.dryRun && err != nil && !errors.Is(err, redisconn.ErrURL) {
		a.warn("warning: %s; inputs that are already queued are counted as to queue", cli.Sentence(err))
		return without, nil
	} else if err != nil {
		return nil, err
	}
	rdb, err := redisconn.Queue(url, 16)
	if err != nil {
		return nil, cli.WithCode(cli.Usage, err)
	}
	opts.Redis = rdb
	return func() { _ = rdb.Close() }, nil // nothing is in flight
}

func openStore(ctx context.Context, url string, uploads bool) (*store.Store, *idempotency.Ledger, error) {
	cfg := store.DefaultConfig()
	cfg.URL = url
	st, err := store.Open(ctx, cfg)
	if err != nil || !uploads {
		return st, nil, err
	}
	ledger, err := idempotency.New(ctx, st.DB(), idempotency.DefaultConfig())
	if err != nil {
		return nil, nil, errors.Join(err, st.Close())
	}
	return st, ledger, nil
}
