package redistest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// databases is the number of logical databases of the shared server, the limit of
// concurrent tests of one binary that use DB.
const databases = 1024

// shared is the one redis-server of this test binary.
var shared struct {
	mu   sync.Mutex
	inst *instance
	err  error // of the only start
	free chan int
}

var prefixes atomic.Int64

// M wraps a *testing.M. Its Run also ends the shared server, before
// goleak.VerifyTestMain checks for leaks.
type M struct{ m *testing.M }

// Wrap returns an M.
func Wrap(m *testing.M) M { return M{m: m} }

// Run runs the tests, ends the shared server and returns the exit code.
func (w M) Run() int {
	defer stopShared()
	return w.m.Run()
}

func stopShared() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.inst != nil {
		shared.inst.close()
		shared.inst = nil
	}
}

func sharedServer(tb testing.TB) *instance {
	tb.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.inst == nil && shared.err == nil {
		shared.inst, shared.err = launch("", "--databases", strconv.Itoa(databases))
		shared.free = make(chan int, databases)
		for i := range databases {
			shared.free <- i
		}
	}
	if shared.err != nil {
		tb.Fatalf("redistest: %s", shared.err)
	}
	return shared.inst
}

// Addr is the host:port of the shared server.
func Addr(tb testing.TB) string {
	tb.Helper()
	return sharedServer(tb).addr
}

// DB returns a client on an empty logical database that no other test uses. The
// client is closed at the end of the test. For a client with other options use
// Addr and DB of its Options(), not a copy: go-redis has replaced zero values there.
func DB(tb testing.TB) *redis.Client {
	tb.Helper()
	inst := sharedServer(tb)
	var db int
	select {
	case db = <-shared.free:
	default:
		tb.Fatalf("redistest: all %d databases are in use", databases)
	}
	rdb := redis.NewClient(&redis.Options{Addr: inst.addr, DB: db})
	tb.Cleanup(func() {
		_ = rdb.Close() // the test may have closed it
		shared.free <- db
	})
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	defer cancel()
	if err := rdb.FlushDB(ctx).Err(); err != nil {
		tb.Fatalf("redistest: empty database %d: %s", db, err)
	}
	return rdb
}

// URL is the URL of a client's server and database, without a password.
func URL(rdb *redis.Client) string {
	o := rdb.Options()
	if o.Network == "unix" {
		return fmt.Sprintf("unix://%s?db=%d", o.Addr, o.DB)
	}
	return fmt.Sprintf("redis://%s/%d", o.Addr, o.DB)
}

// Prefix returns a key prefix that is unique in this binary. It contains the name
// of the test and no braces, spaces or glob characters.
func Prefix(tb testing.TB) string {
	tb.Helper()
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '-'
	}, tb.Name())
	return fmt.Sprintf("%s-%d:", name, prefixes.Add(1))
}
