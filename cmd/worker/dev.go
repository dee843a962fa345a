package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"reprise/idempotency"
	"reprise/internal/auddsim"
	"reprise/internal/devredis"
	"reprise/internal/redisconn"
	"reprise/internal/settings"
	"reprise/store"
	"reprise/worker"
)

// devFlags are the flags of `worker dev` alone.
type devFlags struct {
	data      string
	exit      bool
	json      bool
	ephemeral bool
}

func (a app) devCommand() *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Try everything in one process: Redis, AudD simulator, worker, web UI",
		Long: `Try everything in one process: Redis, AudD simulator, worker, web UI.

It enqueues sample clips, prints each result as it arrives and a summary, then
stays up so that you can enqueue files of your own from another terminal.
Costs nothing, unless AUDD_API_TOKEN is set: then it talks to AudD and costs units.

Tasks and results live in the data folder, and survive, when a redis-server is
installed. Exit codes: 0 stopped cleanly, 1 could not start, 2 wrong usage or stopped uncleanly.`,
		Example: `  worker dev --exit            run the samples and stop
  worker dev                   stay up; then: enqueue recognize FILE --wait
  worker dev --exit --json     print the summary as one JSON object`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.dev(cmd, f) },
	}
	addFlags(cmd.Flags())
	cmd.Flags().StringVar(&f.data, "data", "", "data folder (default "+settings.DefaultData+"; also REPRISE_DATA)")
	cmd.Flags().BoolVar(&f.exit, "exit", false, "stop after the summary")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the summary as one JSON object")
	cmd.Flags().BoolVar(&f.ephemeral, "ephemeral", false, "accept a Redis in memory although AudD is billed")
	return cmd
}

// stack is what dev opened, closed last in, first out.
type stack struct{ closers []func() error }

func (s *stack) push(what string, run func() error) {
	s.closers = append(s.closers, func() error {
		if err := run(); err != nil {
			return fmt.Errorf("stop %s: %w", what, err)
		}
		return nil
	})
}

func (s *stack) close() error {
	var errs []error
	for _, run := range slices.Backward(s.closers) {
		errs = append(errs, run())
	}
	return errors.Join(errs...)
}

// house is everything a running dev has.
type house struct {
	redis   *devredis.Instance
	records *store.Store
	sim     *auddsim.Server // nil when AudD is called
	worker  *worker.Worker
	conf    config
	dir     string
}

func (a app) dev(cmd *cobra.Command, f devFlags) (err error) {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	var open stack
	defer func() {
		if cerr := open.close(); cerr != nil && err == nil {
			err = &uncleanError{cerr}
		}
	}()
	h, err := a.openHouse(ctx, cmd, f, &open)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		ended <- h.worker.Run(ctx)
		close(ended) // it is read twice when the worker ends before it is up
	}()
	err = a.demonstrate(ctx, h, f, ended)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // stopped on purpose while the samples ran
	}
	cancel()
	return errors.Join(err, <-ended)
}

// openHouse starts Redis, store, simulator and builds the worker.
func (a app) openHouse(ctx context.Context, cmd *cobra.Command, f devFlags, open *stack) (*house, error) {
	h := &house{dir: settings.DataDir(f.data, a.getenv)}
	var err error
	if h.conf, err = a.load(cmd.Flags()); err != nil {
		return nil, err
	}
	log, err := a.devLogger(cmd, h.conf)
	if err != nil {
		return nil, err
	}
	redisconn.SetLogger(log)
	if err := a.devRedis(ctx, h, f, open); err != nil {
		return nil, err
	}
	h.conf.Store.URL = "sqlite:" + filepath.Join(h.dir, "reprise.db")
	if h.records, err = store.Open(ctx, storeConfig(h.conf.Store.URL)); err != nil {
		return nil, err
	}
	open.push("the store", h.records.Close)
	if err := h.upstream(ctx, open); err != nil {
		return nil, err
	}
	if !cmd.Flags().Changed("admin") && a.getenv("REPRISE_ADMIN_ADDR") == "" {
		h.conf.Admin.Addr = freeAddr(ctx, h.conf.Admin.Addr)
	}
	o, err := h.conf.options(a, log)
	if err == nil {
		err = validate(o)
	}
	if err != nil {
		return nil, a.named(cmd.Flags(), err)
	}
	if o.Ledger, err = idempotency.New(ctx, h.records.DB(), idempotency.DefaultConfig()); err != nil {
		return nil, err
	}
	if h.worker, err = worker.New(ctx, o, h.records); err != nil {
		return nil, err
	}
	open.push("the worker", h.worker.Close)
	return h, nil
}

// devLogger is quiet by default: the results are what dev prints.
func (a app) devLogger(cmd *cobra.Command, c config) (*slog.Logger, error) {
	if !cmd.Flags().Changed("log-level") && a.getenv("REPRISE_LOG_LEVEL") == "" {
		c.Log.Level = "error"
	}
	return a.logger(c.Log)
}

// devRedis starts the embedded Redis. Billed calls are not run on one that
// forgets, unless that is asked for.
func (a app) devRedis(ctx context.Context, h *house, f devFlags, open *stack) error {
	c := devredis.DefaultConfig()
	c.Dir = filepath.Join(h.dir, "redis")
	var err error
	if h.redis, err = devredis.Start(ctx, c); err != nil {
		return fmt.Errorf("start the embedded Redis: %w", err)
	}
	open.push("the embedded Redis", h.redis.Close)
	if !h.redis.Durable && h.conf.AudD.Token != "" && !f.ephemeral {
		return errors.New("AudD bills what it recognises, and this Redis lives in memory only: install redis-server, or accept it with --ephemeral")
	}
	h.conf.Redis.URL = h.redis.URL
	return nil
}

// simToken is the token the simulator accepts.
const simToken = "dev-token"

// sampleBytesPerSecond is the bit rate of the long sample, so that the
// simulator bills its real length.
const sampleBytesPerSecond = 2000

// upstream starts the simulator unless a token asks for AudD.
func (h *house) upstream(ctx context.Context, open *stack) error {
	if h.conf.AudD.Token != "" {
		return nil
	}
	sim, err := auddsim.Listen(context.WithoutCancel(ctx), "127.0.0.1:0", auddsim.Config{
		Tokens: []string{simToken}, Rules: auddsim.Samples(),
		BytesPerSecond: sampleBytesPerSecond,
		Limits:         auddsim.Limits{Latency: 150 * time.Millisecond, Jitter: 0.3},
	})
	if err != nil {
		return err
	}
	open.push("the simulator", sim.Close)
	h.sim = sim
	h.conf.AudD.Token, h.conf.AudD.BaseURL, h.conf.AudD.EnterpriseURL = simToken, sim.URL, sim.EnterpriseURL
	return nil
}

// freeAddr is addr, or a free port beside it when another program has it.
func freeAddr(ctx context.Context, addr string) string {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = ln.Close() // only probed
	return addr
}

// announce writes where everything is, for enqueue and inspect.
func (h *house) announce() error {
	db, err := filepath.Abs(filepath.Join(h.dir, "reprise.db"))
	if err != nil {
		return fmt.Errorf("find the data folder: %w", err)
	}
	at := settings.Addresses{Redis: h.redis.URL, Store: "sqlite:" + db, UI: h.uiURL(), PID: os.Getpid()}
	if h.sim != nil {
		at.Simulator = h.sim.URL
	}
	return settings.WriteAddresses(h.dir, at)
}

func (h *house) uiURL() string { return "http://" + h.worker.AdminAddr() + "/" }
