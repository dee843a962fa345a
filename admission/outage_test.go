package admission

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/internal/proctest"
	"reprise/internal/redistest"
	"reprise/tasks"
)

// behindProxy returns Gates that connect to Redis through a proxy.
func behindProxy(t *testing.T, change func(*Config)) (*bench, *redistest.Proxy) {
	t.Helper()
	direct := redistest.DB(t)
	proxy := redistest.NewProxy(t, direct.Options().Addr)
	cfg := DefaultConfig()
	cfg.Timeout = cfg.PermitTTL - trustMargin
	if change != nil {
		change(&cfg)
	}
	rdb := redis.NewClient(&redis.Options{
		Addr: proxy.Addr(), DB: direct.Options().DB, MaxRetries: 1, ReadTimeout: cfg.Timeout / 10, DialTimeout: cfg.Timeout,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	g, err := New(rdb, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = g.Close() })
	return &bench{Gates: g, t: t, rdb: direct}, proxy
}

func TestOperationWithALostReplyIsRepeatedAndChargesOnce(t *testing.T) {
	t.Parallel()
	b, proxy := behindProxy(t, oneSource(Limits{UnitsPerDay: 10}))
	_, err := b.Acquire(t.Context(), request(keyOf(0)))
	b.seedAll(err, 0)
	for i := range 3 {
		lost := proxy.LoseReply(redistest.Containing("evalsha"))
		p := b.acquire(request(keyOf(i)))
		<-lost
		lost = proxy.LoseReply(redistest.Containing("evalsha"))
		b.settle(p, done)
		<-lost
		require.EqualValues(t, i+1, b.num("budget:"+p.Budgets, "spent"))
		require.EqualValues(t, 0, b.num("budget:"+p.Budgets, "reserved"))
		require.EqualValues(t, 0, b.num(mainRecognize, "in_flight"))
	}
}

func TestAdmissionFailsClosedWithoutRedisAndRecovers(t *testing.T) {
	t.Parallel()
	b, proxy := behindProxy(t, oneSource(Limits{Concurrency: 2}))
	p := b.acquire(request(keyOf(1)))
	proxy.Cut()
	_, err := b.Acquire(t.Context(), request(keyOf(2)))
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorIs(t, b.Settle(t.Context(), p, done), ErrUnavailable)
	proxy.Restore()
	proctest.Eventually(t, func() bool {
		b.repeatUnanswered()
		return b.num(mainRecognize, "in_flight") == 0
	}, "Run repeats the settle")
	require.Contains(t, []string{"", "0"}, b.rec(keyOf(2), "possibly_billed"), "no attempt was counted")
	b.settle(b.acquire(request(keyOf(2))), done)
}

func TestPermitWhoseReplyWasLostIsReleased(t *testing.T) {
	t.Parallel()
	b, proxy := behindProxy(t, func(c *Config) {
		oneSource(Limits{Concurrency: 1, UnitsPerDay: 10})(c)
		c.Timeout = 5 * time.Second
	})
	_, err := b.Acquire(t.Context(), request(keyOf(0)))
	b.seedAll(err, 0)
	proxy.Blackhole() // Redis runs the script, but the reply is lost
	r := request(keyOf(1))
	_, err = b.Acquire(t.Context(), r)
	require.ErrorIs(t, err, ErrUnavailable)
	proxy.Restore()
	proctest.Eventually(t, func() bool {
		b.repeatUnanswered()
		return b.num(mainRecognize, "in_flight") == 0 && b.rec(r.Key, "settled_attempts") == r.AttemptID
	})
	require.Contains(t, []string{"", "0"}, b.rec(r.Key, "possibly_billed"))
	p := b.acquire(request(r.Key))
	require.Nil(t, p.Lost)
	require.EqualValues(t, 1, b.num("budget:"+p.Budgets, "reserved"))
	require.EqualValues(t, 0, b.num("budget:"+p.Budgets, "spent"))
}

func TestPermitWithoutRenewalBecomesInvalid(t *testing.T) {
	t.Parallel()
	b, proxy := behindProxy(t, func(c *Config) {
		c.PermitTTL, c.RenewEvery, c.Timeout = 4*time.Second, 200*time.Millisecond, 2*time.Second
	})
	p := b.acquire(request(keyOf(1)))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	proxy.Cut()
	proctest.Eventually(t, func() bool { return p.Valid() != nil })
	proxy.Restore()
	// The next confirmation makes the permit valid again, because no other call got it.
	proctest.Eventually(t, func() bool { return p.Valid() == nil || p.lost.Load() })
}

func TestOneWorkersOperationsShareRoundTrips(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t)
	b := benchOn(t, server.Client(), func(c *Config) { c.AIMD.Off = true })
	b.settle(b.acquire(request("recognize_first")), done)
	require.NoError(t, b.rdb.ConfigResetStat(t.Context()).Err())
	const workers, each = 64, 30
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for k := range each {
				p, err := b.Acquire(t.Context(), request(fmt.Sprintf("recognize_%d_%d", i, k)))
				if err != nil {
					t.Errorf("acquire: %s", err)
					return
				}
				b.SettleLater(p, CallReport{Outcome: tasks.Match, Channel: tasks.ChannelSuccess, ClearRecord: true})
			}
		})
	}
	wg.Wait()
	require.NoError(t, b.Close())
	stats, err := b.rdb.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	var calls int
	for line := range strings.Lines(stats) {
		if n, _ := fmt.Sscanf(line, "cmdstat_evalsha:calls=%d", &calls); n == 1 {
			break
		}
	}
	require.Positive(t, calls)
	require.Less(t, calls, workers*each/2, "%d tasks", workers*each)
}

// A Redis without free memory grants no permits but still releases them.
func TestPermitIsReleasedWhenRedisIsOutOfMemory(t *testing.T) {
	t.Parallel()
	b := benchOn(t, redistest.NewServer(t).Client(), oneSource(Limits{UnitsPerDay: 10}))
	_, err := b.Acquire(t.Context(), request(keyOf(0)))
	b.seedAll(err, 0)
	p := b.acquire(request(keyOf(0)))
	require.NoError(t, b.rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, err = b.Acquire(t.Context(), request(keyOf(1)))
	require.ErrorIs(t, err, ErrUnavailable)
	b.settle(p, done)
	require.Zero(t, b.num(mainRecognize, "in_flight"))
	require.EqualValues(t, 1, b.num("budget:"+p.Budgets, "spent"))
	require.NoError(t, b.rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
	b.acquire(request(keyOf(1)))
}
