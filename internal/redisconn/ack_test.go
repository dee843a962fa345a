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

	"reprise/internal/queue/asynqkey"
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

// The pace gathers company: until it allows the next batch nobody leaves, then
// all leave together. Stopping ends the wait for it.
func TestAcknowledgementsShareRoundTrips(t *testing.T) {
	t.Parallel()
	c, srv, _ := cutClient(t)
	require.NoError(t, done.Load(t.Context(), c).Err())
	var seen trips
	c.AddHook(&seen)
	acks, never := &c.queue.acks, time.Now().Add(time.Hour)
	acks.last = never
	args := make([]string, 40)
	args[7] = "bad"
	finished := make(chan []error, 1)
	go func() { finished <- finish(t.Context(), c, args...) }()
	require.Eventually(t, func() bool {
		acks.mu.Lock()
		defer acks.mu.Unlock()
		return len(acks.waiting) == len(args)
	}, patience, time.Millisecond)
	require.Zero(t, seen.batches.Load())
	c.Stopping()
	for i, err := range <-finished {
		if args[i] == "bad" {
			require.ErrorContains(t, err, "NOT FOUND")
			continue
		}
		require.NoError(t, err)
	}
	require.Equal(t, "39", srv.Client().Get(t.Context(), "count").Val())
	require.EqualValues(t, 40, seen.commands.Load())
	require.EqualValues(t, 1, seen.batches.Load())
	require.True(t, acks.last.Before(never), "the pace goes on from the last batch")
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
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	require.Error(t, errors.Join(finish(ctx, c, "")...))
	requireBound(t, start, 3*time.Second)
	running := make(chan []error, 1)
	go func() { running <- finish(context.Background(), c, "", "") }()
	start = time.Now()
	c.Stopping()
	require.Error(t, errors.Join(finish(context.Background(), c, "")...))
	require.Error(t, errors.Join(<-running...))
	requireBound(t, start, stopBound)
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
		n, err := srv.Client().ZCard(t.Context(), asynqkey.Of("default", asynqkey.Completed)).Result()
		return err == nil && n == 1
	}, patience, 20*time.Millisecond)
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
	go func() { defer close(blocked); c.BLPop(context.Background(), 0, "work") }()
	require.Eventually(t, func() bool {
		n, err := admin.Do(t.Context(), "CLIENT", "LIST").Text()
		return err == nil && strings.Contains(n, "cmd=blpop")
	}, patience, 10*time.Millisecond)
	for _, err := range finish(t.Context(), c, "", "", "") {
		require.Error(t, err)
	}
	require.NoError(t, admin.LPush(t.Context(), "work", "x").Err())
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
	soon, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	defer context.AfterFunc(soon, proxy.Restore)() // whoever still tries gets through
	require.Error(t, errors.Join(finish(soon, c, "", "")...))
	require.Zero(t, srv.Client().Exists(t.Context(), "count").Val())
}

// overtaking lets the first batch leave only after the second.
type overtaking struct {
	trips

	t      *testing.T
	second chan struct{}
}

func (o *overtaking) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "evalsha" {
			switch o.batches.Add(1) {
			case 1:
				select {
				case <-o.second:
				case <-time.After(patience):
					o.t.Error("the second batch waits for the first")
				}
			case 2:
				close(o.second)
			}
		}
		return next(ctx, cmds)
	}
}

func TestABatchThatHangsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	c, srv, _ := cutClient(t)
	require.NoError(t, done.Load(t.Context(), c).Err())
	hook := overtaking{t: t, second: make(chan struct{})}
	c.AddHook(&hook)
	first := make(chan []error, 1)
	go func() { first <- finish(t.Context(), c, "") }()
	require.Eventually(t, func() bool { return hook.batches.Load() == 1 }, patience, time.Millisecond)
	require.NoError(t, errors.Join(finish(t.Context(), c, "")...))
	require.NoError(t, errors.Join(<-first...))
	require.Equal(t, "2", srv.Client().Get(t.Context(), "count").Val())
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
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	require.Error(t, errors.Join(finish(ctx, c, make([]string, 500)...)...))
	requireBound(t, start, 4*time.Second)
}
