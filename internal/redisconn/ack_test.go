package redisconn

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/internal/redistest"
)

// done has the keys of asynq's script for a finished task, and counts.
var done = redis.NewScript(`if ARGV[1] == "bad" then return redis.error_reply("NOT FOUND") end return redis.call("INCR", KEYS[4])`)

// finish runs the script many times at once and returns the errors.
func finish(ctx context.Context, c *Client, args ...string) []error {
	errs := make([]error, len(args))
	var group sync.WaitGroup
	for i, arg := range args {
		group.Go(func() {
			errs[i] = done.Run(ctx, c, []string{"q:active", "q:lease", "q:completed", "count"}, arg).Err()
		})
	}
	group.Wait()
	return errs
}

// trips counts the batches that are sent.
type trips struct{ batches, commands atomic.Int64 }

func (*trips) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (t *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "evalsha" {
			t.batches.Add(1)
			t.commands.Add(int64(len(cmds)))
		}
		return next(ctx, cmds)
	}
}

func TestAcknowledgementsShareRoundTrips(t *testing.T) {
	t.Parallel()
	c, srv, _ := cutClient(t)
	require.NoError(t, done.Load(t.Context(), c).Err())
	var seen trips
	c.AddHook(&seen)
	args := make([]string, 40)
	args[7] = "bad"
	for i, err := range finish(t.Context(), c, args...) {
		if args[i] == "bad" {
			require.ErrorContains(t, err, "NOT FOUND")
			continue
		}
		require.NoError(t, err)
	}
	require.Equal(t, "39", srv.Client().Get(t.Context(), "count").Val())
	require.EqualValues(t, 40, seen.commands.Load())
	require.Less(t, seen.batches.Load(), int64(10))
}

func TestAnAcknowledgementLoadsItsScript(t *testing.T) {
	t.Parallel()
	c, srv, _ := cutClient(t)
	require.NoError(t, errors.Join(finish(t.Context(), c, "", "")...))
	require.Equal(t, "2", srv.Client().Get(t.Context(), "count").Val())
}

func TestAcknowledgementsSurviveAnOutage(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*redistest.Proxy){"refused": (*redistest.Proxy).Cut, "silent": (*redistest.Proxy).Blackhole} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, srv, proxy := cutClient(t)
			require.NoError(t, done.Load(t.Context(), c).Err())
			cut(proxy)
			back := time.AfterFunc(4*time.Second, proxy.Restore)
			defer back.Stop()
			require.NoError(t, errors.Join(finish(t.Context(), c, "", "", "")...))
			count, err := srv.Client().Get(t.Context(), "count").Int()
			require.NoError(t, err)
			require.GreaterOrEqual(t, count, 3, "more where only an answer got lost")
		})
	}
}

func TestAnAcknowledgementKeepsItsDeadlineAndTheBoundOfStopping(t *testing.T) {
	t.Parallel()
	c, _, proxy := cutClient(t)
	proxy.Cut()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	start := time.Now()
	require.Error(t, errors.Join(finish(ctx, c, "")...))
	require.InDelta(t, 3, time.Since(start).Seconds(), 0.7)
	running := make(chan []error, 1)
	go func() { running <- finish(context.Background(), c, "", "") }()
	start = time.Now()
	c.Stopping()
	require.Error(t, errors.Join(finish(context.Background(), c, "")...))
	require.Error(t, errors.Join(<-running...))
	require.InDelta(t, 5, time.Since(start).Seconds(), 1)
}

// What is shared is recognised by its keys: asynq may change them.
func TestAsynqsOwnAcknowledgementIsRecognised(t *testing.T) {
	t.Parallel()
	c, srv, _ := cutClient(t)
	var seen trips
	c.AddHook(&seen)
	server := asynq.NewServerFromRedisClient(c, asynq.Config{Concurrency: 2, LogLevel: asynq.ErrorLevel, TaskCheckInterval: 20 * time.Millisecond})
	require.NoError(t, server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return nil })))
	_, err := asynq.NewClientFromRedisClient(srv.Client()).EnqueueContext(t.Context(), asynq.NewTask("x", nil), asynq.Retention(time.Hour))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		n, err := srv.Client().ZCard(t.Context(), "asynq:{default}:completed").Result()
		return err == nil && n == 1
	}, 20*time.Second, 20*time.Millisecond)
	server.Shutdown()
	require.Positive(t, seen.commands.Load())
}

// A password is changed while a worker runs: a new connection is refused with a
// reply, not by the network, and go-redis tells that to Exec alone.
func TestAnAcknowledgementThatGotNoConnectionIsNoneDone(t *testing.T) {
	t.Parallel()
	srv := redistest.NewServer(t)
	admin := srv.Client()
	require.NoError(t, admin.ConfigSet(t.Context(), "requirepass", "one").Err())
	u, err := url.Parse(srv.URL())
	require.NoError(t, err)
	u.User = url.UserPassword("default", "one")
	c, err := Queue(u.String(), 4)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, done.Load(t.Context(), c).Err())
	require.NoError(t, admin.ConfigSet(t.Context(), "requirepass", "two").Err())
	blocked := make(chan struct{}) // the one connection there is has something to do
	go func() { defer close(blocked); c.BLPop(context.Background(), time.Second, "nothing") }()
	require.Eventually(t, func() bool {
		n, err := admin.Do(t.Context(), "CLIENT", "LIST").Text()
		return err == nil && strings.Contains(n, "cmd=blpop")
	}, 10*time.Second, 10*time.Millisecond)
	for _, err := range finish(t.Context(), c, "", "", "") {
		require.Error(t, err)
	}
	<-blocked
	require.Zero(t, admin.Exists(t.Context(), "count").Val())
}

// asynq's deadline of an ack is the end of the lease: later the task may be
// somebody else's.
func TestAnAcknowledgementIsNotSentAfterItsDeadline(t *testing.T) {
	t.Parallel()
	c, srv, proxy := cutClient(t)
	require.NoError(t, done.Load(t.Context(), c).Err())
	over, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	require.Error(t, errors.Join(finish(over, c, "")...))
	proxy.Cut()
	back := time.AfterFunc(1500*time.Millisecond, proxy.Restore)
	defer back.Stop()
	soon, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	require.Error(t, errors.Join(finish(soon, c, "", "")...))
	require.Zero(t, srv.Client().Exists(t.Context(), "count").Val())
}

func TestManyAcknowledgementsDoNotStandInLineBehindASilentRedis(t *testing.T) {
	t.Parallel()
	srv := redistest.NewServer(t)
	proxy := redistest.NewProxy(t, srv.Addr())
	c, err := Queue("redis://"+proxy.Addr(), 500)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, done.Load(t.Context(), c).Err())
	proxy.Blackhole()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	start := time.Now()
	require.Error(t, errors.Join(finish(ctx, c, make([]string, 500)...)...))
	require.InDelta(t, 4, time.Since(start).Seconds(), 2)
}
