package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"reprise/internal/redisconn"
	"reprise/internal/settings"
	"reprise/internal/text"
)

// Connection is the settings of the commands that connect to a queue. They embed it with `mapstructure:",squash"`.
type Connection struct {
	// Data is the folder where worker dev leaves its addresses. Default .reprise.
	Data  string         `mapstructure:"data"`
	Redis settings.Redis `mapstructure:"redis"`
	Store settings.Store `mapstructure:"store"`
	// Price is the price of 1,000 units in dollars. Default 0: unknown.
	Price float64 `mapstructure:"price_per_1000" min:"0"`
}

// connectionFlags maps the settings of a Connection to their flags.
var connectionFlags = map[string]string{
	"redis.url": "redis", "store.url": "store", "data": "data", "price_per_1000": "price-per-1000",
}

// AddConnectionFlags adds the flags of a Connection and --config.
func AddConnectionFlags(f *pflag.FlagSet) {
	f.String("config", "", "settings file in YAML (REPRISE_CONFIG)")
	f.String("redis", "", "Redis of the queue: redis://, rediss:// or unix:// (REPRISE_REDIS_URL; default: the Redis of worker dev)")
	f.String("store", "", "store of results, sqlite:PATH (REPRISE_STORE_URL; default: the store of worker dev, else a file in the data folder)")
	f.String("data", settings.DefaultData, "data folder of worker dev (REPRISE_DATA)")
	f.Float64("price-per-1000", 0, "price of 1,000 units in dollars (REPRISE_PRICE_PER_1000)")
}

// LoadConnection fills into, a struct with defaults that embeds a Connection, from the settings file, the environment
// and flags. It prints warnings and ignores keys of other commands. Its errors have the code Usage.
func (p *Process) LoadConnection(into any, flags *pflag.FlagSet) error {
	redisconn.SetLogger(nil) // errors contain what it logs
	loaded, err := settings.Load(into, settings.Source{Environ: p.Environ, Flags: flags, FlagNames: connectionFlags, Shared: true})
	if err != nil {
		return &Error{Usage, err}
	}
	for _, w := range loaded.Warnings {
		fmt.Fprintf(p.Err, "%s: warning: %s\n", p.Name, w)
	}
	return nil
}

// Addresses returns the URLs of Redis and the store. A URL that is not set is that of the running worker dev; the store
// is otherwise a file in the data folder. If there is no Redis URL, it returns an error with the URL of the store.
func (c Connection) Addresses() (redisURL, storeURL string, err error) {
	redisURL, storeURL = c.Redis.URL, c.Store.URL
	if redisURL == "" || storeURL == "" {
		dev, devErr := settings.ReadAddresses(c.Data)
		if redisURL == "" {
			redisURL, err = dev.Redis, WithCode(Usage, devErr)
		}
		storeURL = cmp.Or(storeURL, dev.Store)
	}
	return redisURL, cmp.Or(storeURL, "sqlite:"+filepath.Join(c.Data, "reprise.db")), err
}

// Ping checks that Redis responds. Its error has the code Usage for an invalid URL, else the given code.
func (c Connection) Ping(ctx context.Context, redisURL string, code int) error {
	err := redisconn.Ping(ctx, redisURL)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, redisconn.ErrURL):
		return &Error{Usage, err}
	}
	return &Error{code, c.Redis.Reaching(err)}
}

// Money returns the price of units as text, "price unknown" if no price is set.
func (c Connection) Money(units int64) string {
	if c.Price == 0 {
		return "price unknown (--price-per-1000)"
	}
	return fmt.Sprintf("%s at %s/1000", text.Dollars(c.Cost(units)), text.Dollars(c.Price))
}

// Cost returns the price of units in dollars.
func (c Connection) Cost(units int64) float64 { return float64(units) * c.Price / 1000 }
