package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"reprise/admission"
	"reprise/idempotency"
	"reprise/internal/settings"
	"reprise/worker"
)

// config is the settings of the worker commands, as they stand in a file.
type config struct {
	Redis    settings.Redis `mapstructure:"redis"`
	Store    settings.Store `mapstructure:"store"`
	AudD     auddConfig     `mapstructure:"audd"`
	Slots    slotConfig     `mapstructure:"slots"`
	SlotWait time.Duration  `mapstructure:"slot_wait"`
	Timeouts timeoutConfig  `mapstructure:"timeouts"`
	Drain    time.Duration  `mapstructure:"drain"`
	Budgets  budgetConfig   `mapstructure:"budgets"`
	Uploads  uploadConfig   `mapstructure:"uploads"`
	Price    float64        `mapstructure:"price_per_1000"`
	Admin    adminConfig    `mapstructure:"admin"`
	Log      logConfig      `mapstructure:"log"`
	Gates    gatesConfig    `mapstructure:",squash"`
}

type auddConfig struct {
	Token         string `mapstructure:"token" secret:"true"`
	BaseURL       string `mapstructure:"base_url"`
	EnterpriseURL string `mapstructure:"enterprise_url"`
	SkipCheck     bool   `mapstructure:"skip_check"`
}

type slotConfig struct {
	Recognize  int `mapstructure:"recognize"`
	Enterprise int `mapstructure:"enterprise"`
	Upload     int `mapstructure:"upload"`
}

type timeoutConfig struct {
	Recognize  time.Duration `mapstructure:"recognize"`
	Enterprise time.Duration `mapstructure:"enterprise"`
	Upload     time.Duration `mapstructure:"upload"`
}

type budgetConfig struct {
	MaxAttempts       int           `mapstructure:"max_attempts"`
	MaxPossiblyBilled int           `mapstructure:"max_possibly_billed"`
	GiveUpAfter       time.Duration `mapstructure:"give_up_after"`
}

type uploadConfig struct {
	Verify      string        `mapstructure:"verify" name:"true"` // hold, recognize
	VerifyDelay time.Duration `mapstructure:"verify_delay"`
}

type adminConfig struct {
	Addr         string `mapstructure:"addr"`
	Password     string `mapstructure:"password" secret:"true"`
	AllowChanges bool   `mapstructure:"allow_changes"`
}

type logConfig struct {
	Format string `mapstructure:"format" name:"true"` // auto, text, json
	Level  string `mapstructure:"level" name:"true"`  // debug, info, warn, error
}

// defaults are worker.DefaultOptions in the file's form.
func defaults() config {
	o := worker.DefaultOptions()
	return config{
		Slots:    slotConfig(o.Slots),
		SlotWait: o.SlotWait,
		Timeouts: timeoutConfig{Recognize: o.Timeouts.Recognize, Enterprise: o.Timeouts.Enterprise, Upload: o.Timeouts.Upload},
		Budgets: budgetConfig{
			MaxAttempts: o.Policy.MaxAttempts, MaxPossiblyBilled: o.Policy.MaxPossiblyBilled, GiveUpAfter: o.Policy.GiveUpAfter,
		},
		Uploads: uploadConfig{Verify: string(o.Verify), VerifyDelay: o.VerifyDelay},
		Admin:   adminConfig{Addr: o.Admin.Addr},
		Log:     logConfig{Format: "auto", Level: "info"},
		Gates:   defaultGates(),
	}
}

// flagKeys maps settings to the flags that set them.
var flagKeys = map[string]string{
	"redis.url": "redis", "store.url": "store", "audd.base_url": "base-url", "audd.enterprise_url": "enterprise-url",
	"audd.skip_check": "skip-auth-check", "slots.recognize": "recognize-slots", "slots.enterprise": "enterprise-slots",
	"slots.upload": "upload-slots", "admin.addr": "admin", "log.level": "log-level", "log.format": "log-format",
}

func addFlags(f *pflag.FlagSet) {
	d := defaults()
	f.String("config", "", "settings file (YAML); also REPRISE_CONFIG")
	f.String("redis", "", "Redis URL (redis://, rediss://, unix://)")
	f.String("store", "", "store URL (sqlite:PATH)")
	f.String("base-url", "", "replace AudD's base URL")
	f.String("enterprise-url", "", "replace AudD's enterprise URL")
	f.Bool("skip-auth-check", false, "do not check the token at start")
	f.Int("recognize-slots", d.Slots.Recognize, "clips worked on at once")
	f.Int("enterprise-slots", d.Slots.Enterprise, "long recordings worked on at once")
	f.Int("upload-slots", d.Slots.Upload, "uploads worked on at once")
	f.String("admin", d.Admin.Addr, "address of the web UI, metrics and health checks")
	f.String("log-level", d.Log.Level, "debug, info, warn or error")
	f.String("log-format", d.Log.Format, "auto, text or json")
}

// load reads file, environment and flags over the defaults.
func (a app) load(f *pflag.FlagSet) (config, error) {
	c := defaults()
	src := settings.Source{Getenv: a.getenv, Flags: map[string]*pflag.Flag{}}
	if flag := f.Lookup("config"); flag != nil {
		src.File = flag.Value.String()
	}
	for key, name := range flagKeys {
		if flag := f.Lookup(name); flag != nil {
			src.Flags[key] = flag
		}
	}
	warnings, err := settings.Load(&c, src)
	if err != nil {
		return c, fmt.Errorf("read the settings: %w", err)
	}
	var tokens []string
	for _, s := range c.Gates.Sources {
		tokens = append(tokens, s.TokenEnv)
	}
	if err := settings.UnknownVariables(&c, a.environ, false, tokens...); err != nil {
		return c, fmt.Errorf("read the settings: %w", err)
	}
	for _, w := range warnings {
		fmt.Fprintln(a.stderr, "worker: warning:", w)
	}
	if token := a.getenv("AUDD_API_TOKEN"); token != "" && c.AudD.Token == "" {
		c.AudD.Token = token
	}
	return c, nil
}

// options turns settings into what the engine takes.
func (c config) options(a app, log *slog.Logger) (worker.Options, error) {
	o := worker.DefaultOptions()
	o.RedisURL = c.Redis.URL
	o.Slots = worker.Slots(c.Slots)
	o.SlotWait = c.SlotWait
	o.Timeouts.Recognize, o.Timeouts.Enterprise, o.Timeouts.Upload = c.Timeouts.Recognize, c.Timeouts.Enterprise, c.Timeouts.Upload
	o.Drain = c.Drain
	o.Policy.MaxAttempts, o.Policy.MaxPossiblyBilled = c.Budgets.MaxAttempts, c.Budgets.MaxPossiblyBilled
	o.Policy.GiveUpAfter = c.Budgets.GiveUpAfter
	o.PricePer1000 = c.Price
	o.Verify, o.VerifyDelay = idempotency.Verify(c.Uploads.Verify), c.Uploads.VerifyDelay
	o.Admin = worker.Admin(c.Admin)
	o.SkipAuthCheck = c.AudD.SkipCheck
	o.Version = version()
	o.Log = log
	c.Gates.apply(&o)
	var err error
	o.Sources, err = c.sources(a.getenv)
	return o, err
}

// logger writes text to a terminal, JSON elsewhere, unless told otherwise.
func (a app) logger(c logConfig) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		return nil, fmt.Errorf("log.level %q: want debug, info, warn or error", c.Level)
	}
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: readable}
	asText := c.Format == "text"
	switch c.Format {
	case "text", "json":
	case "auto":
		f, ok := a.stderr.(*os.File)
		asText = ok && term.IsTerminal(int(f.Fd()))
	default:
		return nil, fmt.Errorf("log.format %q: want auto, text or json", c.Format)
	}
	if asText {
		return slog.New(slog.NewTextHandler(a.stderr, opts)), nil
	}
	return slog.New(slog.NewJSONHandler(a.stderr, opts)), nil
}

// check finds what is wrong with the settings, as a start would. What is
// missing (Redis, store, a token) is no fault yet: another machine may have it.
func (c config) check(a app) error {
	_, logErr := a.logger(c.Log)
	o, err := c.options(a, slog.New(slog.DiscardHandler))
	if errors.Is(err, errNoToken) {
		err = nil
		o.Sources = []worker.Source{source(mainSource, "", "", "")}
	}
	if o.RedisURL == "" {
		o.RedisURL = "redis://of-another-machine"
	}
	if len(o.Sources) > 0 {
		err = errors.Join(err, validate(o))
	}
	return errors.Join(logErr, err)
}

// validate checks options before anything is opened for them.
func validate(o worker.Options) error {
	o.Ledger = &idempotency.Ledger{} // comes with the store
	o.Admission.Sources = nil
	for _, s := range o.Sources {
		o.Admission.Sources = append(o.Admission.Sources, admission.SourceConfig{Name: s.Name})
	}
	return o.Validate()
}

// named adds to the keys in an error the flags or variables that set them.
func (a app) named(f *pflag.FlagSet, err error) error {
	return settings.WithOrigin(err, func(key string) string {
		if name := flagKeys[key]; name != "" && f.Changed(name) {
			return "--" + name
		}
		if name := settings.EnvName(key); a.getenv(name) != "" {
			return name
		}
		return ""
	})
}

// configCommand prints the settings in force.
func (a app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print the settings in force, secrets masked (costs nothing)",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.load(cmd.Flags())
			if err != nil {
				return err
			}
			if err := c.check(a); err != nil {
				return a.named(cmd.Flags(), err)
			}
			return settings.Print(a.stdout, &c)
		},
	}
	addFlags(cmd.Flags())
	return cmd
}

// sentence is an error for people: joined errors in one line.
func sentence(err error) string {
	return strings.Join(strings.Split(err.Error(), "\n"), "; ")
}

var errNoStore = errors.New("no store URL: set REPRISE_STORE_URL or --store, for example sqlite:/var/lib/reprise/reprise.db")

var errNoToken = errors.New("no AudD token: set AUDD_API_TOKEN (from dashboard.audd.io), or try `worker dev`, which needs none")
