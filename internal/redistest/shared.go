package redistest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"reprise/internal/devredis/redisproc"
)

// databases is the number of logical databases of the shared server, the limit of concurrent tests of one
// binary that use DB.
const databases = 1024

// shared is the redis-server of this test binary. The first DB starts it.
var shared struct {
	once sync.Once
	dir  string
	proc *redisproc.Process // nil after a failed start
	err  error              // of the start
	free chan int
}

// M wraps a *testing.M. Its Run also ends the shared server, before goleak.VerifyTestMain checks for leaks.
type M struct{ m *testing.M }

// Wrap returns m with a Run that also stops the shared Redis server. Use it in TestMain.
func Wrap(m *testing.M) M { return M{m: m} }

// Run runs the tests, ends the shared server and returns the exit code.
func (w M) Run() int {
	defer stopShared()
	return w.m.Run()
}

// IgnoreRedial makes goleak ignore the goroutine in which a pool of go-redis redials every second after many
// failed dials. It may end a second after its client was closed, and goleak waits for less than that.
//
//	goleak.VerifyTestMain(redistest.Wrap(m), redistest.IgnoreRedial())
func IgnoreRedial() goleak.Option {
	return goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")
}

func stopShared() {
	if shared.proc != nil {
		_ = shared.proc.Stop(redisproc.StopTimeout) // its data is not needed
	}
	_ = os.RemoveAll(shared.dir)
}

func startShared() {
	if shared.dir, shared.err = os.MkdirTemp("", "redistest-"); shared.err != nil {
		return
	}
	shared.proc, shared.err = redisproc.Start(context.Background(), config(shared.dir, "--databases", strconv.Itoa(databases)))
	shared.free = make(chan int, databases)
	for i := range databases {
		shared.free <- i
	}
}

// DB returns a client on an empty logical database that no other test uses. The client is closed at the end
// of the test. For a client with other options use Addr and DB of its Options(), not a copy: go-redis has
// replaced zero values there.
func DB(tb testing.TB) *redis.Client {
	tb.Helper()
	shared.once.Do(startShared)
	if shared.err != nil {
		tb.Fatalf("redistest: %s", shared.err)
	}
	var db int
	select {
	case db = <-shared.free:
	default:
		tb.Fatalf("redistest: all %d databases are in use", databases)
	}
	rdb := redis.NewClient(&redis.Options{Addr: shared.proc.Addr, DB: db})
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

// URL returns the URL of a client's server and database. The client comes from DB.
func URL(rdb *redis.Client) string {
	return fmt.Sprintf("redis://%s/%d", rdb.Options().Addr, rdb.Options().DB)
}
