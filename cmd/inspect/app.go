package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"reprise/admission"
	"reprise/internal/settings"
)

// config is the part of the settings that looking needs. Limits and groups are
// read where they are in force: in Redis.
type config struct {
	// Data is the folder where worker dev leaves its addresses; default .reprise.
	Data  string         `mapstructure:"data"`
	Redis settings.Redis `mapstructure:"redis"`
	Store settings.Store `mapstructure:"store"`
	// Price of 1,000 units in dollars; 0 = unknown.
	Price float64 `mapstructure:"price_per_1000"`
	// TimeZone and MonthAnchor say which day and month a unit budget covers.
	TimeZone    string `mapstructure:"time_zone"`
	MonthAnchor int    `mapstructure:"month_anchor"`
	// Budgets are the workers'; here they are only shown.
	Budgets budgetConfig `mapstructure:"budgets"`
}

type budgetConfig struct {
	MaxAttempts       int `mapstructure:"max_attempts"`
	MaxPossiblyBilled int `mapstructure:"max_possibly_billed"`
}

// app is what every command shares.
type app struct {
	environ []string // as os.Environ gives it
	getenv  func(string) string
	std     stdio
	bound   map[string]*pflag.Flag

	file string
	who  string
	json bool
	cfg  config
	zone *time.Location
}

// flags adds the flags of every command.
func (a *app) flags(fs *pflag.FlagSet) {
	fs.StringVar(&a.file, "config", "", "settings file (YAML; REPRISE_CONFIG)")
	fs.String("redis", "", "Redis of the queue, redis://, rediss:// or unix:// (REPRISE_REDIS_URL; default: worker dev's)")
	fs.String("store", "", "store of results, sqlite:PATH (REPRISE_STORE_URL; default: worker dev's, else in the data folder)")
	fs.String("data", settings.DefaultData, "data folder of worker dev (REPRISE_DATA)")
	fs.Float64("price-per-1000", 0, "price of 1,000 units in dollars, to show money (REPRISE_PRICE_PER_1000)")
	fs.StringVar(&a.who, "by", "", "who acts, kept beside every change (default: $USER, else the system's user)")
	fs.BoolVar(&a.json, "json", false, "print JSON instead of text")
	a.bound = map[string]*pflag.Flag{
		"redis.url": fs.Lookup("redis"), "store.url": fs.Lookup("store"), "data": fs.Lookup("data"), "price_per_1000": fs.Lookup("price-per-1000"),
	}
}

// load reads the settings. Other commands share the file, so their keys are
// ignored here.
func (a *app) load() error {
	d := admission.DefaultConfig()
	a.cfg = config{Data: settings.DefaultData, TimeZone: d.TimeZone, MonthAnchor: d.MonthAnchor, Budgets: budgetConfig{MaxAttempts: 5, MaxPossiblyBilled: 3}}
	warnings, err := settings.Load(&a.cfg, settings.Source{File: a.file, Getenv: a.getenv, Flags: a.bound, Shared: true})
	if err == nil {
		err = settings.UnknownVariables(&a.cfg, a.environ, true)
	}
	if err != nil {
		return &failure{exitUsage, err}
	}
	for _, w := range warnings {
		fmt.Fprintf(a.std.err, "inspect: %s\n", w)
	}
	if a.cfg.Price < 0 || math.IsInf(a.cfg.Price, 0) || math.IsNaN(a.cfg.Price) {
		return usage("price_per_1000: want 0 or more")
	}
	if a.zone, err = time.LoadLocation(a.cfg.TimeZone); err != nil {
		return usage("time_zone: want an IANA name such as UTC or Europe/Berlin")
	}
	return nil
}

// by is who acts: --by, else the environment's user, else the system's.
func (a *app) by() string {
	for _, name := range []string{a.who, a.getenv("USER"), a.getenv("LOGNAME")} {
		if name = strings.TrimSpace(name); name != "" {
			return name
		}
	}
	return systemUser(user.Current())
}

// systemUser is the name of who runs the process, or its number where no name
// is known, as in a container.
func systemUser(u *user.User, err error) string {
	if err == nil && strings.TrimSpace(u.Username) != "" {
		return strings.TrimSpace(u.Username)
	}
	return "uid " + strconv.Itoa(os.Getuid())
}

// addresses finds Redis and the store: as set, else where worker dev runs. A
// missing Redis is an error of the commands that need it only.
func (a *app) addresses() (redisURL, storeURL string, err error) {
	redisURL, storeURL = a.cfg.Redis.URL, a.cfg.Store.URL
	if redisURL == "" || storeURL == "" {
		var dev settings.Addresses
		if dev, err = settings.ReadAddresses(a.cfg.Data); err == nil {
			redisURL, storeURL = firstOf(redisURL, dev.Redis), firstOf(storeURL, dev.Store)
		}
	}
	if redisURL != "" {
		err = nil
	}
	return redisURL, firstOf(storeURL, "sqlite:"+filepath.Join(a.cfg.Data, "reprise.db")), err
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// checkStoreFile keeps a look from making an empty store where there is none.
func checkStoreFile(url string) error {
	file, ok := strings.CutPrefix(url, "sqlite:")
	if !ok {
		return nil
	}
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return refused("no store at %s yet: set REPRISE_STORE_URL or --store to the one the workers use", file)
	}
	return nil
}
