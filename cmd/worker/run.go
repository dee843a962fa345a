package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"reprise/idempotency"
	"reprise/internal/redisconn"
	"reprise/internal/settings"
	"reprise/store"
	"reprise/worker"
)

func (a app) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Work on jobs from a Redis of yours until stopped (costs units)",
		Long: `Work on jobs from a Redis of yours until stopped (costs units).

SIGTERM or Ctrl-C stops in order: nothing new is taken, running calls finish.
A second one exits at once; what was in flight may still be billed and is
found, charged, at its next delivery.

Exit codes: 0 stopped cleanly, 1 could not start, 2 stopped uncleanly.`,
		Example: `  REPRISE_REDIS_URL=redis://127.0.0.1:6379 REPRISE_STORE_URL=sqlite:reprise.db AUDD_API_TOKEN=… worker run
  worker run --config /etc/reprise.yaml --admin 127.0.0.1:9090
  worker run --base-url http://127.0.0.1:8700/ --enterprise-url http://127.0.0.1:8700/enterprise/   (against the simulator)`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.work(cmd) },
	}
	addFlags(cmd.Flags())
	return cmd
}

func (a app) checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check settings, Redis, store and token, then exit (costs nothing)",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withWorker(cmd, func(ctx context.Context, w *worker.Worker) error {
				if err := w.Check(ctx); err != nil {
					return err
				}
				fmt.Fprintln(a.stdout, "ok: settings, Redis, store and token")
				return nil
			})
		},
	}
	addFlags(cmd.Flags())
	return cmd
}

func (a app) work(cmd *cobra.Command) error {
	return a.withWorker(cmd, func(ctx context.Context, w *worker.Worker) error { return w.Run(ctx) })
}

// withWorker builds a worker from the settings, uses it and closes it.
func (a app) withWorker(cmd *cobra.Command, use func(context.Context, *worker.Worker) error) (err error) {
	ctx := cmd.Context()
	c, err := a.load(cmd.Flags())
	if err != nil {
		return err
	}
	log, err := a.logger(c.Log)
	if err != nil {
		return err
	}
	if err := c.complete(a); err != nil {
		return err
	}
	o, err := c.options(a, log)
	if err != nil {
		return err
	}
	w, closeAll, err := build(ctx, o, c.Store.URL)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := closeAll(); cerr != nil && err == nil {
			err = &uncleanError{cerr}
		}
	}()
	return use(ctx, w)
}

// complete fills URLs that were not given from a running `worker dev`, and
// says what is missing.
func (c *config) complete(a app) error {
	if c.Redis.URL == "" || c.Store.URL == "" {
		found, err := settings.ReadAddresses(settings.DataDir("", a.getenv))
		if err != nil && c.Redis.URL == "" {
			return err
		}
		if c.Redis.URL == "" {
			c.Redis.URL = found.Redis
		}
		if c.Store.URL == "" && found.Store != "" {
			c.Store.URL = found.Store
		}
	}
	if c.Store.URL == "" {
		return errNoStore
	}
	return nil
}

func build(ctx context.Context, o worker.Options, storeURL string) (*worker.Worker, func() error, error) {
	redisconn.SetLogger(o.Log)
	records, err := store.Open(ctx, storeConfig(storeURL))
	if err != nil {
		return nil, nil, fmt.Errorf("open the store: %w", err)
	}
	if o.Ledger, err = idempotency.New(ctx, records.DB(), idempotency.DefaultConfig()); err != nil {
		return nil, nil, errors.Join(err, records.Close())
	}
	w, err := worker.New(ctx, o, records)
	if err != nil {
		return nil, nil, errors.Join(err, records.Close())
	}
	return w, func() error { return errors.Join(w.Close(), records.Close()) }, nil
}

// version is the build's, from the module or the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return "devel"
}

func storeConfig(url string) store.Config {
	c := store.DefaultConfig()
	c.URL = url
	return c
}
