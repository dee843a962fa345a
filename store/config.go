package store

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Config has the location and the limits of the store.
type Config struct {
	// URL is "sqlite:PATH"; a relative PATH is taken from the working
	// directory. sqlite:///PATH is an absolute one. A missing folder is created.
	// Default "sqlite:.reprise/reprise.db".
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
	if _, err := c.File(); err != nil {
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

// File returns the path in a sqlite URL. White space around the URL is dropped. A
// spelling that would make another, empty store beside the one that was meant is
// refused.
func (c Config) File() (string, error) {
	scheme, path, found := strings.Cut(strings.TrimSpace(c.URL), ":")
	path, scheme = strings.TrimSpace(path), strings.ToLower(scheme)
	if rest, absolute := strings.CutPrefix(path, "///"); absolute {
		path = "/" + rest
	}
	switch {
	case found && (scheme == "postgres" || scheme == "postgresql"):
		return "", errors.New("store url: this build does not support PostgreSQL, use sqlite:PATH")
	case found && scheme != "sqlite":
		return "", errors.New("store url: unknown scheme, use sqlite:PATH")
	case !found || path == "":
		return "", errors.New("store url: must be sqlite:PATH")
	case strings.HasPrefix(path, "//"):
		return "", errors.New("store url: // starts a host name, use sqlite:PATH")
	case strings.HasPrefix(strings.ToLower(path), "file:"):
		return "", errors.New("store url: only one scheme, use sqlite:PATH")
	case strings.Contains(path, "?"):
		return "", errors.New("store url: takes no options (?…), use sqlite:PATH")
	case strings.ContainsFunc(path, unicode.IsControl):
		return "", errors.New("store url: the path has control characters")
	case strings.Contains(strings.ToLower(path), ":memory:"):
		return "", errors.New("store url: results need a file, use sqlite:PATH")
	case strings.HasSuffix(path, "/"):
		return "", errors.New("store url: the path is a folder, add the name of the file")
	}
	return path, nil
}

// CheckFolder refuses a SQLite store in a folder that does not exist, because a
// typo would create an empty store, which does not know what was paid for. What
// else is wrong with the URL is reported by Validate.
func (c Config) CheckFolder() error {
	path, err := c.File()
	if err != nil {
		return nil
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("store.url: no folder %s: create it or correct the path", dir)
	}
	return nil
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
