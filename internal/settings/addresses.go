package settings

import (
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

// CheckFolder refuses a store in a folder that does not exist: a slip of the
// pen would make a new, empty store, which forgets what was paid for.
func (s Store) CheckFolder() error {
	path, ok := strings.CutPrefix(s.URL, "sqlite:")
	if !ok || strings.TrimSpace(path) == "" {
		return nil // the store says what it wants
	}
	if dir := filepath.Dir(path); !isDir(dir) {
		return fmt.Errorf("store.url: there is no folder %s: make it, or mend the path", dir)
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Reaching adds to an error from connecting to Redis what to do about it. The
// address is not in it, because it may hold a password.
func (Redis) Reaching(err error) error {
	return fmt.Errorf("%w: is it running, and is redis.url (%s or --redis) its address?", err, EnvName("redis.url"))
}

// Addresses say where a running `worker dev` can be reached. The file is
// readable by its owner only: the Redis URL may hold a password.
type Addresses struct {
	Redis     string `json:"redis"`
	Store     string `json:"store"`
	UI        string `json:"ui"`
	Simulator string `json:"simulator,omitempty"`
	PID       int    `json:"pid"`
}

// ErrNoRedis says what to do when nobody said where Redis is.
var ErrNoRedis = errors.New("no Redis URL: set REPRISE_REDIS_URL or --redis, or start `go run ./cmd/worker dev`")

// DataDir is the data folder: the flag, else REPRISE_DATA, else .reprise.
func DataDir(flag string, getenv func(string) string) string {
	if flag != "" {
		return flag
	}
	if getenv != nil {
		if dir := getenv(EnvPrefix + "DATA"); dir != "" {
			return dir
		}
	}
	return DefaultData
}

// WriteAddresses stores a in the data folder, which it creates. A reader sees
// the old file or the new one, never a part.
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

// RemoveAddresses takes the file away; that it is gone already is no error.
func RemoveAddresses(dir string) error {
	err := os.Remove(filepath.Join(dir, addressesFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove addresses: %w", err)
	}
	return nil
}

// ReadAddresses finds the running `worker dev` of a data folder. It returns an
// error wrapping ErrNoRedis when there is none, also when its file is still
// there but its process is gone.
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
