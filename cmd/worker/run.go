package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

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

Exit codes: 0 stopped cleanly, 1 could not start, 2 wrong usage or stopped uncleanly.`,
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
		Short: "Check settings, Redis, store and tokens, then exit (costs nothing)",
		Long: `Check settings, Redis, store and the token of every source, then exit (costs nothing).

Exit codes: 0 all is well, 1 something is not: also a token that AudD refuses
or that could not be checked, unless --skip-auth-check is given; 2 wrong usage.`,
		Example: `  worker check
  worker check --config /etc/reprise.yaml
  worker check --skip-auth-check       where AudD cannot be reached`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withWorker(cmd, func(ctx context.Context, c config, w *worker.Worker) error {
				tokens, err := w.Check(ctx)
				if err != nil {
					return err
				}
				fmt.Fprintln(a.stdout, "ok: settings, Redis and store")
				if c.AudD.SkipCheck {
					fmt.Fprintln(a.stdout, "token not checked (--skip-auth-check)")
					return nil
				}
				return a.reportTokens(tokens)
			})
		},
	}
	addFlags(cmd.Flags())
	return cmd
}

// reportTokens prints a line for each source; the error names those whose
// token is not known to be good.
func (a app) reportTokens(checks []worker.TokenCheck) error {
	var refused, unknown []string
	for _, c := range checks {
		switch {
		case c.Err == nil:
			fmt.Fprintf(a.stdout, "source %s: token ok\n", c.Source)
		case c.Refused:
			refused = append(refused, c.Source)
			fmt.Fprintf(a.stdout, "source %s: AudD refuses the token: %s\n", c.Source, sentence(c.Err))
		default:
			unknown = append(unknown, c.Source)
			fmt.Fprintf(a.stdout, "source %s: token not checked: %s\n", c.Source, sentence(c.Err))
		}
	}
	var errs []error
	if len(refused) > 0 {
		errs = append(errs, fmt.Errorf("AudD refuses the token of %s: see dashboard.audd.io", strings.Join(refused, ", ")))
	}
	if len(unknown) > 0 {
		errs = append(errs, fmt.Errorf("the token of %s could not be checked: is AudD reachable from here? (--skip-auth-check leaves it out)", strings.Join(unknown, ", ")))
	}
	return errors.Join(errs...)
}

func (a app) work(cmd *cobra.Command) error {
	return a.withWorker(cmd, func(ctx context.Context, _ config, w *worker.Worker) error { return w.Run(ctx) })
}

// withWorker builds a worker from the settings, uses it and closes it.
func (a app) withWorker(cmd *cobra.Command, use func(context.Context, config, *worker.Worker) error) (err error) {
	ctx := cmd.Context()
	c, err := a.load(cmd.Flags())
	if err != nil {
		return err
	}
	log, err := a.logger(c.Log)
	if err != nil {
		return a.named(cmd.Flags(), err)
	}
	if err := c.complete(a); err != nil {
		return err
	}
	o, err := c.options(a, log)
	if err != nil {
		return a.named(cmd.Flags(), err)
	}
	if err := validate(o); err != nil {
		return a.named(cmd.Flags(), err)
	}
	if err := c.Store.CheckFolder(); err != nil {
		return a.named(cmd.Flags(), err)
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
	return use(ctx, c, w)
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
