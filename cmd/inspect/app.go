package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/admission"
	"reprise/idempotency"
	"reprise/internal/cli"
	"reprise/internal/redisconn"
	"reprise/internal/text"
	"reprise/ops"
	"reprise/store"
	"reprise/store/identity"
)

// config is the settings of inspect. Limits and groups are read from Redis, where they are in force.
type config struct {
	cli.Connection `mapstructure:",squash"`
	// TimeZone and MonthAnchor say which day and month a unit budget covers.
	TimeZone    string `mapstructure:"time_zone"`
	MonthAnchor int    `mapstructure:"month_anchor"`
	// Budgets are the workers'; inspect only shows them.
	Budgets struct {
		MaxAttempts       int `mapstructure:"max_attempts"`
		MaxPossiblyBilled int `mapstructure:"max_possibly_billed"`
	} `mapstructure:"budgets"`
}

// app is what all commands share.
type app struct {
	*cli.Process
	flags *pflag.FlagSet
	who   string
	json  bool
}

func newApp(p *cli.Process, flags *pflag.FlagSet) *app {
	a := &app{Process: p, flags: flags}
	cli.AddConnectionFlags(flags)
	flags.StringVar(&a.who, "by", "", "your name, stored with every change (default: $USER, else the system's user)")
	flags.BoolVar(&a.json, "json", false, "print JSON instead of text")
	return a
}

// need is what a command connects to.
type need int

const (
	needsRedis need = 1 << iota
	needsStore
	wantsRedis // use Redis if it can be reached
	anyStore   // open a store that the queue does not belong to, too
)

// session is the running command: the open reports and actions, and the view that prints them.
type session struct {
	*app
	view
	*ops.Ops
}

// view prints reports as text.
type view struct {
	*cli.Printer
	text.Times
	errors io.Writer
	money  func(units int64) string // the price of units, as far as it is known
}

// action is the body of a command.
type action func(ctx context.Context, s *session, args []string) error

// run makes a cobra function that opens what the action needs, runs it and closes everything.
func (a *app) run(n need, do action) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.with(cmd.Context(), n, func(ctx context.Context, s *session) error { return do(ctx, s, args) })
	}
}

// with loads the settings, opens what is needed, calls do and closes everything. An ops.InputError is wrong usage.
func (a *app) with(ctx context.Context, n need, do func(context.Context, *session) error) error {
	cfg, zone, err := a.load()
	if err != nil {
		return err
	}
	o := ops.Options{
		Zone: zone, MonthAnchor: cfg.MonthAnchor, Price: cfg.Price,
		MaxAttempts: cfg.Budgets.MaxAttempts, MaxPossiblyBilled: cfg.Budgets.MaxPossiblyBilled,
	}
	closers, err := a.open(ctx, n, cfg, &o)
	defer func() {
		for _, c := range slices.Backward(closers) {
			if err := c(); err != nil {
				fmt.Fprintf(a.Err, "inspect: %s\n", cli.Sentence(err))
			}
		}
	}()
	if err != nil {
		return err
	}
	v := view{a.Printer(), text.Times{Zone: zone, Now: time.Now()}, a.Err, cfg.Money}
	err = do(ctx, &session{a, v, ops.New(o)})
	if _, wrong := errors.AsType[*ops.InputError](err); wrong {
		return cli.WithCode(cli.Usage, err)
	}
	return err
}

func (a *app) load() (cfg config, zone *time.Location, err error) {
	d := admission.DefaultConfig()
	cfg.TimeZone, cfg.MonthAnchor = d.TimeZone, d.MonthAnchor
	cfg.Budgets.MaxAttempts, cfg.Budgets.MaxPossiblyBilled = 5, 3
	if err := a.LoadConnection(&cfg, a.flags); err != nil {
		return cfg, nil, err
	}
	if cfg.Price < 0 || math.IsInf(cfg.Price, 0) || math.IsNaN(cfg.Price) {
		return cfg, nil, cli.Errorf(cli.Usage, "price_per_1000: must be 0 or more")
	}
	if zone, err = time.LoadLocation(cfg.TimeZone); err != nil {
		return cfg, nil, cli.Errorf(cli.Usage, "time_zone: expected an IANA name such as UTC or Europe/Berlin")
	}
	return cfg, zone, nil
}

// open connects to what is needed. It returns the functions that close the connections, also with an error.
func (a *app) open(ctx context.Context, n need, cfg config, o *ops.Options) (closers []func() error, err error) {
	redisURL, storeURL, err := cfg.Addresses()
	if n&(needsRedis|wantsRedis) != 0 {
		if err == nil {
			closers, err = openRedis(ctx, redisURL, cfg, o)
		}
		if err != nil && n&wantsRedis != 0 {
			fmt.Fprintf(a.Err, "inspect: the list does not show what tasks wait for: %s\n", cli.Sentence(err))
			err = nil
		}
		if err != nil {
			return closers, err
		}
	}
	if n&needsStore == 0 {
		return closers, nil
	}
	storeConfig := store.DefaultConfig()
	storeConfig.URL = storeURL
	file, err := storeConfig.File()
	if err != nil {
		return closers, cli.WithCode(cli.Usage, err)
	}
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) { // opening it would create an empty store
		return closers, fmt.Errorf("no store at %s yet: set REPRISE_STORE_URL or --store to the workers' store", file)
	}
	if o.Store, err = store.Open(ctx, storeConfig); err != nil {
		return closers, err
	}
	closers = append(closers, o.Store.Close)
	if o.Redis != nil && n&anyStore == 0 {
		if err := identity.Check(ctx, o.Redis, store.MarksOf(o.Store)); err != nil {
			return closers, err
		}
	}
	o.Ledger, err = idempotency.New(ctx, o.Store.DB(), idempotency.DefaultConfig())
	return closers, err
}

// openRedis connects reports with few retries and short timeouts, because the operator waits, and enqueuing as producers do.
func openRedis(ctx context.Context, url string, cfg config, o *ops.Options) (closers []func() error, err error) {
	if err := cfg.Ping(ctx, url, cli.Failed); err != nil {
		return nil, err
	}
	rdb, err := redisconn.Admission(url)
	if err != nil {
		return nil, cli.WithCode(cli.Usage, err)
	}
	queue, err := redisconn.Queue(url, 4)
	if err != nil {
		return []func() error{rdb.Close}, cli.WithCode(cli.Usage, err)
	}
	o.Redis, o.Queue = rdb, queue
	return []func() error{rdb.Close, queue.Close}, nil
}

// by returns who acts: --by, else the user of the environment or of the system.
func (a *app) by() string {
	for _, name := range []string{a.who, a.Getenv("USER"), a.Getenv("LOGNAME")} {
		if name = strings.TrimSpace(name); name != "" {
			return name
		}
	}
	return systemUser(user.Current())
}

// systemUser returns the user's name. It returns the process's user id if the system has no name for it, as in a container.
func systemUser(u *user.User, err error) string {
	if err == nil && strings.TrimSpace(u.Username) != "" {
		return strings.TrimSpace(u.Username)
	}
	return "uid " + strconv.Itoa(os.Getuid())
}

// show prints a report as JSON, or calls text. It returns err, the error of reading the report, and then prints nothing.
func (s *session) show(report any, err error, text func()) error {
	switch {
	case err != nil:
		return err
	case s.json:
		return s.JSON(report)
	}
	text()
	return nil
}

// colours are the colours of states, verdicts and gates. A state without a colour is not in the table.
var colours = map[string]cli.Colour{
	"running": cli.Green, "paused": cli.Yellow,
	"done": cli.Green, "no_match": cli.Yellow, "archive": cli.Red, "hold": cli.Red,
	"DONE": cli.Green, "RUNNING": cli.Green, "WAITING": cli.Yellow, "HELD": cli.Red, "ARCHIVED": cli.Red,
	"ARCHIVED permanently": cli.Red, "NOT QUEUED": cli.Red, "UNKNOWN": cli.Red,
	"settled": cli.Green, "uncertain": cli.Red, "rejected": cli.Red,
	"halt": cli.Red, "breaker": cli.Red, "throttle": cli.Yellow,
}

// coloured returns a cell in the colour of a state.
func coloured(s, state string) cli.Cell { return cli.Cell{Text: s, Colour: colours[state]} }

// at returns the time of a report, the zero time for nil.
func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// or returns s, or "–" if s is empty.
func or(s string) string { return cmp.Or(s, "–") }

// numberOr returns a count, or "–" for 0.
func numberOr(n int64) cli.Cell {
	if n == 0 {
		return cli.Number("–")
	}
	return cli.Number(text.Thousands(n))
}

// after returns s with a prefix, or "" if s is empty.
func after(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}
