package settings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// Reaching adds to an error from connecting to Redis what the user can check. It shows no address, because an address
// may contain a password.
func (Redis) Reaching(err error) error {
	return fmt.Errorf("%w: check that it runs and that redis.url (%s or --redis) is its address", err, EnvName("redis.url"))
}

// Addresses are the addresses of a running `worker dev`. Only the owner can read their file, because the Redis URL may
// contain a password.
type Addresses struct {
	Redis     string `json:"redis"`
	Store     string `json:"store"`
	UI        string `json:"ui"`
	Simulator string `json:"simulator,omitempty"`
	PID       int    `json:"pid"`
}

// ErrNoRedis means that no Redis URL is set. Its text says how to set one.
var ErrNoRedis = errors.New("no Redis URL: set REPRISE_REDIS_URL or --redis, or start `go run ./cmd/worker dev`")

// DataDir returns the data folder: the flag, else REPRISE_DATA, else .reprise.
func DataDir(flag string, environ []string) string {
	return cmp.Or(flag, Getenv(environ, EnvPrefix+"DATA"), DefaultData)
}

// WriteAddresses writes a to the data folder, which it creates. It replaces the file atomically.
func WriteAddresses(dir string, a Addresses) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create data folder: %w", err)
	}
	tmp, err := os.CreateTemp(dir, addressesFile+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("write addresses: %w", err)
	}
	defer os.Remove(tmp.Name()) // fails after the rename
	enc := json.NewEncoder(tmp)
	enc.SetIndent("", "  ")
	err = errors.Join(enc.Encode(a), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(dir, addressesFile))
	}
	if err != nil {
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

// ReadAddresses returns the addresses of the `worker dev` that runs on a data folder. Its error wraps ErrNoRedis if
// none runs there, also when an ended process has left its file.
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
