package store

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Config has the location and the limits of the store.
type Config struct {
	// URL is "sqlite:PATH"; a relative PATH is taken from the working
	// directory. A missing folder is created. Default
	// "sqlite:.reprise/reprise.db".
	URL string
	// BusyTimeout is how long a read or write waits for the lock of another process. Default 5 s; more than 0.
	BusyTimeout time.Duration
	// MaxConns bounds the connections of the pool. Default 8; at least 2, so that reads need not wait for writes.
	MaxConns int
}

// DefaultConfig returns the defaults: a SQLite file in the folder .reprise of the working directory.
func DefaultConfig() Config {
	return Config{URL: "sqlite:.reprise/reprise.db", BusyTimeout: 5 * time.Second, MaxConns: 8}
}

// Validate reports every invalid field by name. It never quotes
// a URL that may hold a password.
func (c Config) Validate() error {
	var errs []error
	if _, err := c.file(); err != nil {
		errs = append(errs, err)
	}
	if c.BusyTimeout <= 0 {
		errs = append(errs, fmt.Errorf("store busy_timeout %s: must be more than 0", c.BusyTimeout))
	}
	if c.MaxConns < 2 {
		errs = append(errs, fmt.Errorf("store max_conns %d: must be 2 or more", c.MaxConns))
	}
	return errors.Join(errs...)
}

// file is the path in a sqlite URL.
func (c Config) file() (string, error) {
	scheme, path, found := strings.Cut(c.URL, ":")
	switch {
	case !found || strings.TrimSpace(path) == "":
		return "", errors.New("store url: must be sqlite:PATH")
	case scheme == "postgres" || scheme == "postgresql":
		return "", errors.New("store url: this build does not support PostgreSQL, use sqlite:PATH")
	case scheme != "sqlite":
		return "", errors.New("store url: unknown scheme, use sqlite:PATH")
	case strings.HasPrefix(path, ":memory:"):
		return "", errors.New("store url: results need a file, use sqlite:PATH")
	}
	return path, nil
}

// dsn returns the SQLite connection string of an absolute file path. synchronous is FULL because NORMAL may lose the last
// commits in a power failure, and the rows record what was paid. A transaction takes the write lock when it begins
// (IMMEDIATE), because SQLite may refuse the lock to a transaction that has read.
func (c Config) dsn(file string) string {
	query := url.Values{
		"_busy_timeout": {strconv.FormatInt(max(c.BusyTimeout.Milliseconds(), 1), 10)},
		"_txlock":       {"immediate"},
		"_pragma":       {"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"},
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(file), RawQuery: query.Encode()}
	return u.String()
}
