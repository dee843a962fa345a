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

// Config sets the store's location and limits.
type Config struct {
	// URL is "sqlite:PATH". A relative PATH starts at the working directory. sqlite:///PATH is absolute. A missing
	// folder is created. Default "sqlite:.reprise/reprise.db".
	URL string
	// BusyTimeout is how long a read or write waits for another process's lock. Default 5 s; must be more than 0.
	BusyTimeout time.Duration
	// MaxConns is the pool's maximum number of connections. Default 8. It must be at least 2, so that reads need not
	// wait for writes.
	MaxConns int
}

// DefaultConfig returns the default configuration: a SQLite file in the folder .reprise below the working directory.
func DefaultConfig() Config {
	return Config{URL: "sqlite:.reprise/reprise.db", BusyTimeout: 5 * time.Second, MaxConns: 8}
}

// Validate reports every invalid field by name. It never quotes a URL, which may contain a password.
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

// File returns the file path in a sqlite URL, without surrounding white space. It refuses spellings that SQLite would
// resolve to a different, empty database.
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
		return "", errors.New("store url: host names are not supported, use sqlite:PATH")
	case strings.HasPrefix(strings.ToLower(path), "file:"):
		return "", errors.New("store url: remove file:, use sqlite:PATH")
	case strings.Contains(path, "?"):
		return "", errors.New("store url: options (?…) are not supported, use sqlite:PATH")
	case strings.ContainsFunc(path, unicode.IsControl):
		return "", errors.New("store url: the path has control characters")
	case strings.Contains(strings.ToLower(path), ":memory:"):
		return "", errors.New("store url: an in-memory database would lose the results, use sqlite:PATH")
	case strings.HasSuffix(path, "/"):
		return "", errors.New("store url: the path is a folder, add a file name")
	}
	return path, nil
}

// CheckFolder returns an error if the folder of a SQLite store does not exist. A typo in the path would create an
// empty store, and work that is already paid would be paid again. Validate reports all other errors in the URL.
func (c Config) CheckFolder() error {
	path, err := c.File()
	if err != nil {
		return nil //nolint:nilerr // Validate reports it
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("store.url: folder %s does not exist: create it or correct the path", dir)
	}
	return nil
}

// dsn returns the SQLite connection string for an absolute file path. synchronous is FULL because the rows record
// what was paid, and NORMAL may lose the last commits in a power failure. A transaction takes the write lock when it
// begins (IMMEDIATE), because SQLite may refuse the lock to a transaction that has already read.
func (c Config) dsn(file string) string {
	query := url.Values{
		"_busy_timeout": {strconv.FormatInt(max(c.BusyTimeout.Milliseconds(), 1), 10)},
		"_txlock":       {"immediate"},
		"_pragma":       {"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"},
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(file), RawQuery: query.Encode()}
	return u.String()
}
