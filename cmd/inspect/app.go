package main

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"reprise/admission"
	"reprise/internal/cli"
	"reprise/internal/settings"
)

// config is the part of the settings that inspect needs. Limits and groups are
// read where they are in force: in Redis.
type config struct {
	cli.Connection `mapstructure:",squash"`
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
	process *cli.Process
	getenv  func(string) string
	std     stdio
	set     *pflag.FlagSet // of every command

	who  string
	json bool
	cfg  config
	zone *time.Location
}

// flags adds the flags of every command.
func (a *app) flags(fs *pflag.FlagSet) {
	a.set = fs
	cli.AddConnectionFlags(fs)
	fs.StringVar(&a.who, "by", "", "who acts, kept beside every change (default: $USER, else the system's user)")
	fs.BoolVar(&a.json, "json", false, "print JSON instead of text")
}

// load reads the settings.
func (a *app) load() error {
	d := admission.DefaultConfig()
	a.cfg = config{TimeZone: d.TimeZone, MonthAnchor: d.MonthAnchor, Budgets: budgetConfig{MaxAttempts: 5, MaxPossiblyBilled: 3}}
	a.cfg.Data = settings.DefaultData
	if err := a.process.LoadConnection(&a.cfg, a.set); err != nil {
		return err
	}
	var err error
	if a.zone, err = time.LoadLocation(a.cfg.TimeZone); err != nil {
		return usage("time_zone: expected an IANA name such as UTC or Europe/Berlin")
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
