package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/admission"
	"reprise/idempotency"
	"reprise/internal/settings"
	"reprise/worker"
)

// flagNames has the flags of settings by key.
var flagNames = map[string]string{
	"redis.url": "redis", "store.url": "store", "audd.base_url": "base-url", "audd.enterprise_url": "enterprise-url",
	"audd.skip_check": "skip-auth-check", "slots.recognize": "recognize-slots", "slots.enterprise": "enterprise-slots",
	"slots.upload": "upload-slots", "admin.addr": "admin", "log.level": "log-level", "log.format": "log-format",
}

// addFlags adds the flags of the settings, with the defaults in d.
func addFlags(f *pflag.FlagSet, d config) {
	f.String("config", "", "settings file in YAML (REPRISE_CONFIG)")
	f.String("redis", "", "Redis URL: redis://, rediss:// or unix:// (REPRISE_REDIS_URL)")
	f.String("store", "", "store URL, sqlite:PATH (REPRISE_STORE_URL)")
	f.String("base-url", "", "base URL of the AudD API, for a simulator or proxy")
	f.String("enterprise-url", "", "base URL of the AudD enterprise API, for a simulator or proxy")
	f.Bool("skip-auth-check", false, "do not check the tokens at startup")
	f.Int("recognize-slots", d.Slots.Recognize, "clips to process at once")
	f.Int("enterprise-slots", d.Slots.Enterprise, "long recordings to process at once")
	f.Int("upload-slots", d.Slots.Upload, "uploads to process at once")
	f.String("admin", d.Admin.Addr, "address of the web UI, metrics and health checks")
	f.String("log-level", d.Log.Level, "debug, info, warn or error")
	f.String("log-format", d.Log.Format, "auto, text or json")
}

// load reads the settings over the defaults c and prints the warnings.
func (a app) load(cmd *cobra.Command, c config) (config, error) {
	var err error
	if c.loaded, err = settings.Load(&c, settings.Source{Environ: a.Environ, Flags: cmd.Flags(), FlagNames: flagNames}); err != nil {
		return c, fmt.Errorf("read the settings: %w", err)
	}
	for _, w := range c.loaded.Warnings {
		fmt.Fprintln(a.Err, "worker: warning:", w)
	}
	c.AudD.Token = cmp.Or(c.AudD.Token, a.Getenv("AUDD_API_TOKEN"))
	return c, nil
}

// complete sets missing URLs to those of a running `worker dev`.
func (c *config) complete(a app) error {
	if c.Redis.URL == "" || c.Store.URL == "" {
		found, err := settings.ReadAddresses(settings.DataDir("", a.Environ))
		if err != nil && c.Redis.URL == "" {
			return err
		}
		c.Redis.URL, c.Store.URL = cmp.Or(c.Redis.URL, found.Redis), cmp.Or(c.Store.URL, found.Store)
	}
	if c.Store.URL == "" {
		return errors.New("no store URL: set REPRISE_STORE_URL or --store, for example sqlite:/var/lib/reprise/reprise.db")
	}
	return nil
}

// check returns the errors that a start would report. A missing Redis, store or token is no error, because the
// settings may be for another machine.
func (c config) check(a app) error {
	_, logErr := a.logger(c.Log.Format, c.Log.Level)
	o, err := c.options(a, slog.New(slog.DiscardHandler))
	if errors.Is(err, errNoToken) {
		o.Sources, err = []worker.Source{source(mainSource, "", "", "")}, nil
	}
	o.RedisURL = cmp.Or(o.RedisURL, "redis://another-machine")
	if len(o.Sources) > 0 {
		err = errors.Join(err, validate(o))
	}
	return c.loaded.WithOrigin(errors.Join(logErr, err))
}

// validate checks options before their store and ledger are open.
func validate(o worker.Options) error {
	o.Ledger = &idempotency.Ledger{}
	o.Admission.Sources = nil
	for _, s := range o.Sources {
		o.Admission.Sources = append(o.Admission.Sources, admission.SourceConfig{Name: s.Name})
	}
	return o.Validate()
}

func (a app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print the settings in force, with secrets masked",
		Example: `  worker config
  worker config --config /etc/reprise.yaml
  REPRISE_SLOTS_RECOGNIZE=32 worker config`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.load(cmd, defaults())
			if err == nil {
				err = c.check(a)
			}
			if err != nil {
				return err
			}
			return settings.Print(a.Out, &c)
		},
	}
	addFlags(cmd.Flags(), defaults())
	return cmd
}
