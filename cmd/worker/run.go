package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reprise/idempotency"
	"reprise/internal/cli"
	"reprise/internal/redisconn"
	"reprise/store"
	"reprise/worker"
)

func (a app) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Process jobs until stopped (costs units)",
		Long: `SIGTERM or Ctrl-C stops gracefully: no new task is taken, and running calls finish. A second signal exits at once; a
call that was in flight may be billed and is recorded as possibly billed at the task's next delivery.`,
		Example: `  REPRISE_REDIS_URL=redis://127.0.0.1:6379 REPRISE_STORE_URL=sqlite:reprise.db AUDD_API_TOKEN=… worker run
  worker run --config /etc/reprise.yaml --admin 127.0.0.1:9090
  worker run --base-url http://127.0.0.1:8700/ --enterprise-url http://127.0.0.1:8700/enterprise/   # use the simulator`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withWorker(cmd, func(ctx context.Context, _ config, w *worker.Worker) error { return w.Run(ctx) })
		},
	}
	addFlags(cmd.Flags(), defaults())
	return cmd
}

func (a app) checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the settings, Redis, the store and the token of every source",
		Long:  `A token that AudD refuses, or that could not be checked, is a failure. No call is billed.`,
		Example: `  worker check
  worker check --config /etc/reprise.yaml
  worker check --skip-auth-check       # where AudD cannot be reached`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withWorker(cmd, func(ctx context.Context, c config, w *worker.Worker) error {
				tokens, err := w.Check(ctx)
				if err != nil {
					return err
				}
				fmt.Fprintln(a.Out, "ok: settings, Redis and store")
				if c.AudD.SkipCheck {
					fmt.Fprintln(a.Out, "token not checked (--skip-auth-check)")
					return nil
				}
				return a.reportTokens(tokens)
			})
		},
	}
	addFlags(cmd.Flags(), defaults())
	return cmd
}

// reportTokens prints a line per source. The error names the sources whose token is refused or could not be
// checked.
func (a app) reportTokens(checks []worker.TokenCheck) error {
	var refused, unknown []string
	for _, c := range checks {
		switch {
		case c.Err == nil:
			fmt.Fprintf(a.Out, "source %s: token ok\n", c.Source)
		case c.Refused:
			refused = append(refused, c.Source)
			fmt.Fprintf(a.Out, "source %s: AudD refuses the token: %s\n", c.Source, cli.Sentence(c.Err))
		default:
			unknown = append(unknown, c.Source)
			fmt.Fprintf(a.Out, "source %s: token not checked: %s\n", c.Source, cli.Sentence(c.Err))
		}
	}
	var errs []error
	if len(refused) > 0 {
		errs = append(errs, fmt.Errorf("AudD refuses the token of %s: see dashboard.audd.io", strings.Join(refused, ", ")))
	}
	if len(unknown) > 0 {
		errs = append(errs, fmt.Errorf("the token of %s could not be checked: check that AudD is reachable from here, or use --skip-auth-check", strings.Join(unknown, ", ")))
	}
	return errors.Join(errs...)
}

// withWorker builds a worker from the settings, calls use and closes the worker.
func (a app) withWorker(cmd *cobra.Command, use func(context.Context, config, *worker.Worker) error) (err error) {
	ctx := cmd.Context()
	c, err := a.load(cmd, defaults())
	if err != nil {
		return err
	}
	log, err := a.logger(c.Log.Format, c.Log.Level)
	if err != nil {
		return c.loaded.WithOrigin(err)
	}
	if err := c.complete(a); err != nil {
		return err
	}
	o, err := c.options(a, log)
	if err == nil {
		err = errors.Join(validate(o), store.Config{URL: c.Store.URL}.CheckFolder())
	}
	if err != nil {
		return c.loaded.WithOrigin(err)
	}
	var open closers
	defer func() { err = open.close(err) }()
	records, err := openStore(ctx, c.Store.URL, &open)
	if err != nil {
		return err
	}
	w, err := build(ctx, o, records, &open)
	if err != nil {
		return err
	}
	return use(ctx, c, w)
}

func openStore(ctx context.Context, url string, open *closers) (*store.Store, error) {
	c := store.DefaultConfig()
	c.URL = url
	records, err := store.Open(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	open.add("the store", records.Close)
	return records, nil
}

// build returns a worker on an open store.
func build(ctx context.Context, o worker.Options, records *store.Store, open *closers) (w *worker.Worker, err error) {
	redisconn.SetLogger(o.Log)
	if o.Ledger, err = idempotency.New(ctx, records.DB(), idempotency.DefaultConfig()); err != nil {
		return nil, err
	}
	o.Marks = store.MarksOf(records)
	if w, err = worker.New(ctx, o, records); err != nil {
		return nil, err
	}
	open.add("the worker", w.Close)
	return w, nil
}
