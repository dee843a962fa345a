package settings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// DefaultData is the data folder when neither --data nor REPRISE_DATA names one.
const DefaultData = ".reprise"

const addressesFile = "addresses.json"

// Redis is the section of settings about the queue's Redis.
type Redis struct {
	// URL is redis://, rediss:// or unix://; default none.
	URL string `mapstructure:"url" secret:"url"`
}

// Store is the section of settings about the SQL store.
type Store struct {
	// URL is sqlite:PATH; default none.
	URL string `mapstructure:"url" secret:"url"`
}

// CheckFolder refuses a SQLite store in a folder that does not exist: a typo
// would create an empty store, which does not know what was paid for.
func (s Store) CheckFolder() error {
	path, ok := strings.CutPrefix(s.URL, "sqlite:")
	if !ok || strings.TrimSpace(path) == "" {
		return nil // opening the store reports it
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("store.url: no folder %s: create it or correct the path", dir)
	}
	return nil
}

// Reaching adds to an error from connecting to Redis what to check. It shows no
// address, which may hold a password.
func (Redis) Reaching(err error) error {
	return fmt.Errorf("%w: check that it runs and that redis.url (%s or --redis) is its address", err, EnvName("redis.url"))
}

// Addresses are those of a running `worker dev`. Only the owner can read their
// file: the Redis URL may hold a password.
type Addresses struct {
	Redis     string `json:"redis"`
	Store     string `json:"store"`
	UI        string `json:"ui"`
	Simulator string `json:"simulator,omitempty"`
	PID       int    `json:"pid"`
}

// ErrNoRedis says how to set the Redis URL when there is none.
var ErrNoRedis = errors.New("no Redis URL: set REPRISE_REDIS_URL or --redis, or start `go run ./cmd/worker dev`")

// DataDir is the data folder: the flag, else REPRISE_DATA, else .reprise.
func DataDir(flag string, environ []string) string {
	return cmp.Or(flag, Getenv(environ, EnvPrefix+"DATA"), DefaultData)
}

// WriteAddresses writes a to the data folder, which it creates. The file is
// replaced atomically.
func WriteAddresses(dir string, a Addresses) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create data folder: %w", err)
	}
	raw, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return fmt.Errorf("encode addresses: %w", err)
	}
	tmp, err := os.CreateTemp(dir, addressesFile+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("write addresses: %w", err)
	}
	defer os.Remove(tmp.Name()) // gone already once renamed
	_, werr := tmp.Write(append(raw, '\n'))
	if err := errors.Join(werr, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write addresses: %w", err)
	}
	if err := os.Rename(tmp.Name(), filepath.Join(dir, addressesFile)); err != nil {
		return fmt.Errorf("write addresses: %w", err)
	}
	return nil
}

// RemoveAddresses removes the file, if there is one.
func RemoveAddresses(dir string) error {
	err := os.Remove(filepath.Join(dir, addressesFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove addresses: %w", err)
	}
	return nil
}

// ReadAddresses returns the addresses of the `worker dev` that runs on a data
// folder. Without one it returns an error wrapping ErrNoRedis, also when the
// file of an ended process is left.
func ReadAddresses(dir string) (Addresses, error) {
	raw, err := os.ReadFile(filepath.Join(dir, addressesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Addresses{}, ErrNoRedis
	}
	if err != nil {
		return Addresses{}, fmt.Errorf("read addresses: %w", err)
	}
	var a Addresses
	if err := json.Unmarshal(raw, &a); err != nil {
		return Addresses{}, fmt.Errorf("read %s: %w", filepath.Join(dir, addressesFile), err)
	}
	if a.PID > 0 && !alive(a.PID) {
		return Addresses{}, fmt.Errorf("worker dev of %s has ended (process %d is gone): %w", dir, a.PID, ErrNoRedis)
	}
	if a.Redis == "" {
		return Addresses{}, ErrNoRedis
	}
	return a, nil
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
