package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/auddsim"
	"reprise/internal/devredis"
	"reprise/internal/redisconn"
	"reprise/internal/settings"
	"reprise/store"
	"reprise/worker"
)

// devFlags are the flags that only `worker dev` has.
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
		Short: "Run Redis, an AudD simulator, the worker and the web UI in one process",
		Long: `The command queues sample clips, prints each result as it arrives and a summary, and keeps running so that you can queue
files of your own from another terminal. With AUDD_API_TOKEN set it calls AudD instead of the simulator (costs units).

With a redis-server installed, tasks and results are kept in the data folder.`,
		Example: `  worker dev --exit            # process the samples and stop
  worker dev                   # keep running; then: enqueue recognize FILE --wait
  worker dev --exit --json     # print the summary as one JSON object`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.dev(cmd, f) },
	}
	addFlags(cmd.Flags(), devDefaults())
	cmd.Flags().StringVar(&f.data, "data", "", "data folder (REPRISE_DATA; default "+settings.DefaultData+")")
	cmd.Flags().BoolVar(&f.exit, "exit", false, "stop after the summary")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the summary as one JSON object")
	cmd.Flags().BoolVar(&f.ephemeral, "ephemeral", false, "allow a Redis in memory although AudD bills the calls")
	return cmd
}

// devDefaults returns the worker's defaults with errors only in the log, because dev prints the results.
func devDefaults() config {
	c := defaults()
	c.Log.Level = "error"
	return c
}

// devStack has the parts of a running dev.
type devStack struct {
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
	var open closers
	defer func() { err = open.close(err) }()
	d, err := a.openDev(ctx, cmd, f, &open)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		ended <- d.worker.Run(ctx)
		close(ended) // it is read twice if the worker ends before it is ready
	}()
	err = a.demonstrate(ctx, d, f, ended)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // stopped by a signal while the samples ran
	}
	cancel()
	return errors.Join(err, <-ended)
}

// openDev starts Redis and the simulator, opens the store and builds the worker.
func (a app) openDev(ctx context.Context, cmd *cobra.Command, f devFlags, open *closers) (*devStack, error) {
	d := &devStack{dir: settings.DataDir(f.data, a.Environ)}
	var err error
	if d.conf, err = a.load(cmd, devDefaults()); err != nil {
		return nil, err
	}
	log, err := a.logger(d.conf.Log.Format, d.conf.Log.Level)
	if err != nil {
		return nil, d.conf.loaded.WithOrigin(err)
	}
	redisconn.SetLogger(log)
	if err := d.startRedis(ctx, f, open); err != nil {
		return nil, err
	}
	if d.records, err = openStore(ctx, "sqlite:"+filepath.Join(d.dir, "reprise.db"), open); err != nil {
		return nil, err
	}
	if err := d.startSimulator(ctx, open); err != nil {
		return nil, err
	}
	if d.conf.loaded.Origin("admin.addr") == "" {
		d.conf.Admin.Addr = freeAddr(ctx, d.conf.Admin.Addr)
	}
	o, err := d.conf.options(a, log)
	if err == nil {
		err = validate(o)
	}
	if err != nil {
		return nil, d.conf.loaded.WithOrigin(err)
	}
	d.worker, err = build(ctx, o, d.records, open)
	return d, err
}

// startRedis starts the embedded Redis. If AudD bills the calls, it requires a Redis that keeps its data, or
// --ephemeral.
func (d *devStack) startRedis(ctx context.Context, f devFlags, open *closers) error {
	var err error
	if d.redis, err = devredis.Start(ctx, filepath.Join(d.dir, "redis")); err != nil {
		return fmt.Errorf("start the embedded Redis: %w", err)
	}
	open.add("the embedded Redis", d.redis.Close)
	if !d.redis.Durable && d.conf.AudD.Token != "" && !f.ephemeral {
		return errors.New("AudD bills these calls, but this Redis keeps its data in memory only: install redis-server, or allow it with --ephemeral")
	}
	d.conf.Redis.URL = d.redis.URL
	return nil
}

// simToken is the token that the simulator accepts.
const simToken = "dev-token"

// sampleBytesPerSecond is the bit rate of the long sample, from which the simulator bills its real length.
const sampleBytesPerSecond = 2000

// startSimulator starts the simulator unless a token for AudD is set.
func (d *devStack) startSimulator(ctx context.Context, open *closers) error {
	if d.conf.AudD.Token != "" {
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
	open.add("the simulator", sim.Close)
	d.sim = sim
	d.conf.AudD.Token, d.conf.AudD.BaseURL, d.conf.AudD.EnterpriseURL = simToken, sim.URL, sim.EnterpriseURL
	return nil
}

// freeAddr returns addr, or an address with a free port if another program uses addr.
func freeAddr(ctx context.Context, addr string) string {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = ln.Close() // only the address was tested
	return addr
}

// announce writes the addresses to the data folder, where enqueue and inspect find them.
func (d *devStack) announce() error {
	db, err := filepath.Abs(filepath.Join(d.dir, "reprise.db"))
	if err != nil {
		return fmt.Errorf("find the data folder: %w", err)
	}
	at := settings.Addresses{Redis: d.redis.URL, Store: "sqlite:" + db, UI: d.uiURL(), PID: os.Getpid()}
	if d.sim != nil {
		at.Simulator = d.sim.URL
	}
	return settings.WriteAddresses(d.dir, at)
}

func (d *devStack) uiURL() string { return "http://" + d.worker.AdminAddr() + "/" }
