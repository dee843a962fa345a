package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"reprise/admission"
	"reprise/idempotency"
	"reprise/internal/cli"
	"reprise/internal/redisconn"
	"reprise/internal/text"
	"reprise/ops"
	"reprise/store"
)

// config is the settings that inspect needs. Limits and groups are read from Redis, where they are in force.
type config struct {
	cli.Connection `mapstructure:",squash"`
	// TimeZone and MonthAnchor say which day and month a unit budget covers.
	TimeZone    string `mapstructure:"time_zone"`
	MonthAnchor int    `mapstructure:"month_anchor"`
	// Budgets are the workers'; here they are only shown.
	Budgets struct {
		MaxAttempts       int `mapstructure:"max_attempts"`
		MaxPossiblyBilled int `mapstructure:"max_possibly_billed"`
	} `mapstructure:"budgets"`
}

// app is what every command shares.
type app struct {
	*cli.Process
	flags *pflag.FlagSet
	who   string
	json  bool
}

func newApp(p *cli.Process, flags *pflag.FlagSet) *app {
	a := &app{Process: p, flags: flags}
	cli.AddConnectionFlags(flags)
	flags.StringVar(&a.who, "by", "", "your name, kept with every change (default: $USER, else the system's user)")
	flags.BoolVar(&a.json, "json", false, "print JSON instead of text")
	return a
}

// need says what a command works with.
type need int

const (
	needsRedis need = 1 << iota
	needsStore
	needsQueue  // Redis, to enqueue
	needsLedger // and the store
	wantsRedis  // if it can be reached
)

// session is the open reports and actions, and where to print.
type session struct {
	*app
	*cli.Printer
	text.Times
	*ops.Ops
	price float64
}

// with loads the settings, opens what is needed, runs do and closes.
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
	err = do(ctx, &session{a, a.Printer(), text.Times{Zone: zone, Now: time.Now()}, ops.New(o), cfg.Price})
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

// open connects to what is needed and returns how to close it.
func (a *app) open(ctx context.Context, n need, cfg config, o *ops.Options) (closers []func() error, err error) {
	redisURL, storeURL, err := cfg.Addresses()
	if n&(needsRedis|needsQueue|wantsRedis) != 0 {
		if err == nil {
			err = a.openRedis(ctx, redisURL, cfg, o, &closers)
		}
		if err != nil && n&wantsRedis != 0 {
			fmt.Fprintf(a.Err, "inspect: what waiting tasks wait for is not shown: %s\n", cli.Sentence(err))
			err = nil
		}
		if err != nil {
			return closers, err
		}
	}
	if n&needsQueue != 0 {
		rdb, err := redisconn.Queue(redisURL, 4)
		if err != nil {
			return closers, err
		}
		o.Queue, closers = rdb, append(closers, rdb.Close)
	}
	if n&(needsStore|needsLedger) == 0 {
		return closers, nil
	}
	if file, ok := strings.CutPrefix(storeURL, "sqlite:"); ok {
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) { // opening would make an empty one
			return closers, fmt.Errorf("no store at %s yet: set REPRISE_STORE_URL or --store to the one the workers use", file)
		}
	}
	storeConfig := store.DefaultConfig()
	storeConfig.URL = storeURL
	if o.Store, err = store.Open(ctx, storeConfig); err != nil {
		return closers, err
	}
	closers = append(closers, o.Store.Close)
	if n&needsLedger != 0 {
		o.Ledger, err = idempotency.New(ctx, o.Store.DB(), idempotency.DefaultConfig())
	}
	return closers, err
}

// openRedis uses few retries and short timeouts: the operator waits for the answer.
func (a *app) openRedis(ctx context.Context, url string, cfg config, o *ops.Options, closers *[]func() error) error {
	if err := cfg.Ping(ctx, url, cli.Failed); err != nil {
		return err
	}
	rdb, err := redisconn.Admission(url)
	if err != nil {
		return cli.WithCode(cli.Usage, err)
	}
	o.Redis, *closers = rdb, append(*closers, rdb.Close)
	return nil
}

// by is who acts: --by, else the user of the environment or of the system.
func (a *app) by() string {
	for _, name := range []string{a.who, a.Getenv("USER"), a.Getenv("LOGNAME")} {
		if name = strings.TrimSpace(name); name != "" {
			return name
		}
	}
	return systemUser(user.Current())
}

// systemUser is the name of a user, or the process's user id where no name is known, as in a container.
func systemUser(u *user.User, err error) string {
	if err == nil && strings.TrimSpace(u.Username) != "" {
		return strings.TrimSpace(u.Username)
	}
	return "uid " + strconv.Itoa(os.Getuid())
}

// show prints a report as JSON, or calls text.
func (s *session) show(report any, text func() error) error {
	if s.json {
		return s.JSON(report)
	}
	return text()
}

// at is a moment of a report; zero for none.
func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// or is s, or "–" when it is empty.
func or(s string) string { return cmp.Or(s, "–") }

// numberOr is a number, "–" for 0.
func numberOr(n int64) cli.Cell {
	if n == 0 {
		return cli.Number("–")
	}
	return cli.Number(text.Thousands(n))
}

// after is s with a text before it; "" when s is empty.
func after(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

func coloured(s string, c cli.Colour) cli.Cell { return cli.Cell{Text: s, Colour: c} }

// money is the price of units, as far as it is known.
func (s *session) money(units int64) string { return cli.Connection{Price: s.price}.Money(units) }
