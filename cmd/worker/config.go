package main

import (
	"log/slog"
	"time"

	"reprise/admission"
	"reprise/idempotency"
	"reprise/internal/cli"
	"reprise/internal/settings"
	"reprise/tasks"
	"reprise/worker"
)

// config has every setting of the worker, in the order in which `worker config` prints them. A field's key in a
// file is its name in snake case.
//
// To add a setting: declare its field here, give it a default in defaults and pass it on in options. The package
// that uses it checks its range and names its key in the error (Validate of worker.Options, admission.Config …).
// load.go declares the flags. README.md lists the settings that users need.
type config struct {
	Redis    settings.Redis
	Store    settings.Store
	AudD     auddConfig `mapstructure:"audd"`
	Slots    worker.Slots
	SlotWait time.Duration
	Timeouts struct{ Recognize, Enterprise, Upload time.Duration }
	Drain    time.Duration
	Budgets  struct {
		MaxAttempts, MaxPossiblyBilled int
		GiveUpAfter                    time.Duration
	}
	Uploads struct {
		Verify      idempotency.Verify `name:"true"`
		VerifyDelay time.Duration
	}
	Price float64 `mapstructure:"price_per_1000" min:"0"`
	Admin struct {
		Addr         string
		Password     string `secret:"true"`
		AllowChanges bool
	}
	Log struct {
		Format string `name:"true"` // auto, text, json
		Level  string `name:"true"` // debug, info, warn, error
	}
	Sources      map[string]sourceConfig
	SourcePolicy admission.SourcePolicy `name:"true"`
	Limits       limitsConfig
	Groups       map[string]groupConfig
	AIMD         admission.AIMD
	Breaker      admission.Breaker
	TimeZone     string
	MonthAnchor  int
	QuotaFull    tasks.QuotaFull `name:"true"`

	loaded *settings.Loaded
}

type auddConfig struct {
	Token                  string `secret:"true"`
	BaseURL, EnterpriseURL string
	SkipCheck              bool
}

// sourceConfig is one AudD account.
type sourceConfig struct {
	Token                  string `secret:"true"`
	TokenEnv               string `variable:"true"` // the environment variable that holds it
	BaseURL, EnterpriseURL string
	Limits                 sourceLimits
}

// sourceLimits are the limits of one source. A key that is left out has the value in limits; 0 = off.
type sourceLimits struct{ Recognize, Enterprise, Upload sourceLimit }

// sourceLimit has the keys of admission.Limits; nil = left out.
type sourceLimit struct {
	Concurrency, RequestsPerMinute, RequestBurst, UnitsPerMinute, UnitBurst, UnitsPerDay, UnitsPerMonth *int64
}

// limitsConfig are the limits of every source, and of all sources together.
type limitsConfig struct{ Recognize, Enterprise, Upload, Global admission.Limits }

type groupConfig struct {
	Ceiling                    settings.Share // of each rate and permit limit
	UnitsPerDay, UnitsPerMonth int64
	Source                     string `name:"true"`
	Weight                     int64
	SlotShare                  settings.Share // of a worker's slots
}

// defaults returns the defaults of worker.DefaultOptions as settings.
func defaults() config {
	o := worker.DefaultOptions()
	var c config
	c.Slots, c.SlotWait = o.Slots, o.SlotWait
	c.Timeouts.Recognize, c.Timeouts.Enterprise, c.Timeouts.Upload = o.Timeouts.Recognize, o.Timeouts.Enterprise, o.Timeouts.Upload
	c.Budgets.MaxAttempts, c.Budgets.MaxPossiblyBilled, c.Budgets.GiveUpAfter = o.Policy.MaxAttempts, o.Policy.MaxPossiblyBilled, o.Policy.GiveUpAfter
	c.Uploads.Verify, c.Uploads.VerifyDelay = o.Verify, o.VerifyDelay
	c.Admin.Addr = o.Admin.Addr
	c.Log.Format, c.Log.Level = "auto", "info"
	a := o.Admission
	c.SourcePolicy, c.AIMD, c.Breaker, c.TimeZone, c.MonthAnchor, c.QuotaFull = a.SourcePolicy, a.AIMD, a.Breaker, a.TimeZone, a.MonthAnchor, a.QuotaFull
	return c
}

// options returns the settings as worker.Options.
func (c config) options(a app, log *slog.Logger) (worker.Options, error) {
	o := worker.DefaultOptions()
	o.RedisURL, o.Log, o.Version = c.Redis.URL, log, cli.Version()
	o.Slots, o.SlotWait, o.Drain = c.Slots, c.SlotWait, c.Drain
	o.Timeouts.Recognize, o.Timeouts.Enterprise, o.Timeouts.Upload = c.Timeouts.Recognize, c.Timeouts.Enterprise, c.Timeouts.Upload
	o.Policy.MaxAttempts, o.Policy.MaxPossiblyBilled, o.Policy.GiveUpAfter = c.Budgets.MaxAttempts, c.Budgets.MaxPossiblyBilled, c.Budgets.GiveUpAfter
	o.Policy.QuotaFull = c.QuotaFull
	o.PricePer1000 = c.Price
	o.Verify, o.VerifyDelay = c.Uploads.Verify, c.Uploads.VerifyDelay
	o.Admin, o.SkipAuthCheck = worker.Admin(c.Admin), c.AudD.SkipCheck
	c.admission(&o.Admission)
	var err error
	o.Sources, err = c.sources(a.Getenv)
	return o, err
}

// admission copies the settings of the gates to g.
func (c config) admission(g *admission.Config) {
	g.SourcePolicy, g.AIMD, g.Breaker, g.QuotaFull = c.SourcePolicy, c.AIMD, c.Breaker, c.QuotaFull
	g.TimeZone, g.MonthAnchor = c.TimeZone, c.MonthAnchor
	g.Paths = map[tasks.Path]admission.Limits{tasks.Recognize: c.Limits.Recognize, tasks.Enterprise: c.Limits.Enterprise, tasks.Upload: c.Limits.Upload}
	g.Global = c.Limits.Global
	g.Groups = map[string]admission.Group{}
	for name, group := range c.Groups {
		g.Groups[name] = admission.Group{
			Ceiling: float64(group.Ceiling), UnitsPerDay: group.UnitsPerDay, UnitsPerMonth: group.UnitsPerMonth,
			Source: group.Source, Weight: group.Weight, SlotShare: float64(group.SlotShare),
		}
	}
	g.PerSource = map[string]map[tasks.Path]admission.Limits{}
	for name, s := range c.Sources {
		if s.Limits != (sourceLimits{}) {
			g.PerSource[name] = map[tasks.Path]admission.Limits{
				tasks.Recognize:  s.Limits.Recognize.or(c.Limits.Recognize),
				tasks.Enterprise: s.Limits.Enterprise.or(c.Limits.Enterprise),
				tasks.Upload:     s.Limits.Upload.or(c.Limits.Upload),
			}
		}
	}
}

// or returns every with the limits of l that are set.
func (l sourceLimit) or(every admission.Limits) admission.Limits {
	set := func(limit *int64, own *int64) {
		if own != nil {
			*limit = *own
		}
	}
	set(&every.Concurrency, l.Concurrency)
	set(&every.RequestsPerMinute, l.RequestsPerMinute)
	set(&every.RequestBurst, l.RequestBurst)
	set(&every.UnitsPerMinute, l.UnitsPerMinute)
	set(&every.UnitBurst, l.UnitBurst)
	set(&every.UnitsPerDay, l.UnitsPerDay)
	set(&every.UnitsPerMonth, l.UnitsPerMonth)
	return every
}
