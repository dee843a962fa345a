package redisconn

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/internal/proctest"
	"reprise/internal/redistest"
)

const (
	patience = time.Minute      // the time limit of every wait
	tooLong  = 30 * time.Second // all retries of a command take about 50 s
)

// requireBound checks that a command was retried until its bound and no longer.
func requireBound(t *testing.T, start time.Time, bound time.Duration) {
	t.Helper()
	took := time.Since(start)
	require.GreaterOrEqual(t, took, bound)
	require.Less(t, took, tooLong)
}

// cutClient returns a queue client that reaches its server through a proxy.
func cutClient(t *testing.T) (*Client, *redistest.Server, *redistest.Proxy) {
	srv := redistest.NewServer(t)
	proxy := redistest.NewProxy(t, srv.Addr())
	c, err := Queue("redis://"+proxy.Addr(), 4)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.NoError(t, c.Ping(t.Context()).Err())
	return c, srv, proxy
}

// outages are the ways in which a proxy makes Redis unavailable.
var outages = map[string]func(*redistest.Proxy){"refused": (*redistest.Proxy).Cut, "silent": (*redistest.Proxy).Blackhole}

func TestCommandWithCancelledContextSurvivesAnOutage(t *testing.T) {
	t.Parallel()
	for name, begin := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, srv, proxy := cutClient(t)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			cancel()
			begin(proxy)
			var over atomic.Bool
			back := time.AfterFunc(4*time.Second, func() { over.Store(true); proxy.Restore() })
			defer back.Stop()
			require.NoError(t, c.Set(ctx, "ack", "1", 0).Err())
			require.True(t, over.Load())
			require.Equal(t, "1", srv.Client().Get(t.Context(), "ack").Val())
		})
	}
}

func TestDeadlineEndsRetries(t *testing.T) {
	t.Parallel()
	for name, begin := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _, proxy := cutClient(t)
			begin(proxy)
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer cancel()
			require.Error(t, c.Set(ctx, "ack", "1", 0).Err())
			requireBound(t, start, 1500*time.Millisecond)
		})
	}
}

func TestStoppingLimitsRetriesOfRunningAndLaterCommands(t *testing.T) {
	t.Parallel()
	c, _, proxy := cutClient(t)
	proxy.Cut()
	start := time.Now()
	running := make(chan error, 1)
	go func() { running <- c.Set(context.Background(), "ack", "1", 0).Err() }()
	c.Stopping()
	c.Stopping()
	require.Error(t, c.Set(context.Background(), "late", "1", 0).Err())
	require.Error(t, <-running)
	requireBound(t, start, stopBound)
}

// asynq repeats an acknowledgement with a context that is already cancelled (processor.go, since v0.25.0). With asynq's own
// client, the task of this test runs again two minutes later.
func TestTaskThatEndsDuringAnOutageRunsOnce(t *testing.T) {
	t.Parallel()
	c, srv, proxy := cutClient(t)
	rdb := srv.Client()
	producer := asynq.NewClientFromRedisClient(rdb)
	_, err := producer.EnqueueContext(t.Context(), asynq.NewTask("x", nil), asynq.TaskID("once"), asynq.Queue("q"), asynq.Retention(time.Hour))
	require.NoError(t, err)
	server := asynq.NewServerFromRedisClient(c, asynq.Config{
		Queues: map[string]int{"q": 1}, Concurrency: 1, LogLevel: asynq.FatalLevel,
		TaskCheckInterval: 20 * time.Millisecond,
	})
	runs := 0
	require.NoError(t, server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		runs++
		proxy.Cut()
		time.AfterFunc(4*time.Second, proxy.Restore)
		return nil
	})))
	proctest.Eventually(t, func() bool {
		n, err := redistest.CountTasks(t.Context(), rdb, "q")
		return err == nil && n.Completed == 1
	})
	c.Stopping()
	server.Shutdown()
	require.Equal(t, 1, runs)
}

func TestDequeueIsSlowedDownWhileRedisRepliesWithErrors(t *testing.T) {
	t.Parallel()
	srv := redistest.NewServer(t)
	c, err := Queue(srv.URL(), 1)
	require.NoError(t, err)
	defer c.Close()
	rdb := srv.Client()
	require.NoError(t, asynqEnqueue(t, rdb))
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	require.NoError(t, rdb.ConfigResetStat(t.Context()).Err())
	server := asynq.NewServerFromRedisClient(c, asynq.Config{Queues: map[string]int{"q": 1}, LogLevel: asynq.FatalLevel})
	require.NoError(t, server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return nil })))
	scripts := func() string { return rdb.Info(t.Context(), "commandstats").Val() }
	proctest.Eventually(t, func() bool { return strings.Contains(scripts(), "cmdstat_evalsha") })
	proctest.Pass(2 * time.Second) // the number of calls in this time is the subject
	calls := scripts()
	c.Stopping()
	server.Shutdown()
	require.Regexp(t, `cmdstat_evalsha:calls=\d{1,2},`, calls) // without the hook: more than 10,000 a second
}

func asynqEnqueue(t *testing.T, rdb redis.UniversalClient) error {
	_, err := asynq.NewClientFromRedisClient(rdb).EnqueueContext(t.Context(), asynq.NewTask("x", nil), asynq.Queue("q"))
	return err
}

type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestErrorPauseDoublesUntilACommandSucceeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p errorPause
		took := func(err error) time.Duration {
			start := time.Now()
			p.after(err, nil, nil)
			return time.Since(start)
		}
		for _, want := range []time.Duration{100, 200, 400, 800, 1600, 2000, 2000} {
			require.Equal(t, want*time.Millisecond, took(reply("OOM")))
		}
		require.Zero(t, took(context.DeadlineExceeded), "go-redis backs off after network errors")
		require.Zero(t, took(reply("NOSCRIPT x")))
		require.Equal(t, 2*time.Second, took(reply("NOPERM")))
		require.Zero(t, took(redis.Nil))
		require.Equal(t, 100*time.Millisecond, took(reply("OOM")))
	})
}

// go-redis retries the HELLO of a new connection on that connection only. A connection that broke during its HELLO held the
// caller for all retries, about 50 s.
func TestConnectionThatBreaksDuringHelloIsReplacedSoon(t *testing.T) {
	t.Parallel()
	srv := redistest.NewServer(t)
	proxy := redistest.NewProxy(t, srv.Addr())
	c, err := Queue("redis://"+proxy.Addr(), 4)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	fired := proxy.LoseRequest(redistest.Containing("hello"))
	start := time.Now()
	require.NoError(t, c.Set(t.Context(), "greeted", "1", 0).Err())
	<-fired
	require.Less(t, time.Since(start), tooLong)
}
