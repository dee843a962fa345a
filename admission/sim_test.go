package admission

import (
	"container/heap"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/tasks"
)

// upstream models an AudD account with a request rate, a limit of calls in flight and a latency.
type upstream struct {
	rate, burst float64 // requests a second; 0 = no limit
	inflight    int     // 0 = no limit
	latency     time.Duration

	tokens  float64
	filled  time.Duration
	busy    int
	allowed int
	refused int
}

func (u *upstream) admit(now time.Duration) bool {
	if u.rate > 0 {
		u.tokens = min(u.burst, u.tokens+u.rate*(now-u.filled).Seconds())
		u.filled = now
	}
	if u.inflight > 0 && u.busy >= u.inflight || u.rate > 0 && u.tokens < 1 {
		u.refused++
		return false
	}
	if u.rate > 0 {
		u.tokens--
	}
	u.busy++
	u.allowed++
	return true
}

type event struct {
	at time.Duration
	do func()
}
type agenda []event

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at < a[j].at }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(e any)        { *a = append(*a, e.(event)) }
func (a *agenda) Pop() any {
	old := *a
	e := old[len(old)-1]
	*a = old[:len(old)-1]
	return e
}

// world runs a worker's slots against an upstream in virtual time. It runs the real scripts on a Redis with a
// simulated clock.
type world struct {
	t      *testing.T
	g      *Gates
	redis  *miniredis.Miniredis
	up     *upstream
	rand   *rand.Rand
	begin  time.Time
	now    time.Duration
	agenda agenda
	keys   int
	asked  int
	base   upstream // counts at the end of the warm-up
}

func newWorld(t *testing.T, up *upstream, change func(*Config)) *world {
	if underRace {
		t.Skip("one goroutine in virtual time: nothing for the race detector, and an interpreter it slows tenfold")
	}
	up.tokens = up.burst
	m := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	w := &world{t: t, redis: m, up: up, rand: rand.New(rand.NewPCG(1, 2)), begin: time.Unix(1.7e9, 0)}
	w.g = benchOn(t, rdb, change).Gates
	m.SetTime(w.begin)
	_, err := w.g.SeedLimits(t.Context())
	require.NoError(t, err)
	return w
}

func (w *world) after(d time.Duration, do func()) { heap.Push(&w.agenda, event{w.now + d, do}) }

func (w *world) jitter(d time.Duration) time.Duration {
	return time.Duration(w.rand.Float64() * float64(d))
}

// slot runs one task after another.
func (w *world) slot() {
	w.keys++
	w.ask(request(keyOf(w.keys)))
}

func (w *world) ask(r Request) {
	w.asked++
	p, start, err := w.g.acquire(w.t.Context(), r)
	if ref, ok := errors.AsType[*Refusal](err); ok {
		w.after(ref.RetryAfter+w.jitter(time.Millisecond), func() { w.ask(r) })
		return
	}
	require.NoError(w.t, err)
	w.after(start+w.jitter(2*time.Millisecond), func() { w.call(p) })
}

func (w *world) call(p *Permit) {
	begin := w.now
	if !w.up.admit(w.now) {
		w.after(3*time.Millisecond, func() {
			s := throttled
			s.Latency = w.now - begin
			require.NoError(w.t, w.g.Settle(w.t.Context(), p, s))
			w.slot()
		})
		return
	}
	took := time.Duration(float64(w.up.latency) * (0.8 + 0.4*w.rand.Float64()))
	w.after(took, func() { w.up.busy-- })
	w.after(took+w.jitter(2*time.Millisecond), func() {
		s := done
		s.Outcome, s.Latency = tasks.Match, w.now-begin
		require.NoError(w.t, w.g.Settle(w.t.Context(), p, s))
		w.slot()
	})
}

// run simulates the warm-up and the measured period. It returns the allowed requests per second and the share of 429s
// in the measured period.
func (w *world) run(slots int, warm, measured time.Duration) (perSecond, share float64) {
	for range slots {
		w.after(w.jitter(100*time.Millisecond), w.slot)
	}
	for len(w.agenda) > 0 && w.now < warm+measured {
		e := heap.Pop(&w.agenda).(event)
		if w.now < warm && e.at >= warm {
			w.base, w.asked = *w.up, 0
		}
		w.now = e.at
		w.redis.SetTime(w.begin.Add(w.now))
		e.do()
	}
	allowed, refused := w.up.allowed-w.base.allowed, w.up.refused-w.base.refused
	return float64(allowed) / measured.Seconds(), float64(refused) / float64(max(1, allowed+refused))
}

func TestAIMDLearnsAnUnknownAccount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		up    upstream
		least float64 // requests a second
	}{
		{"a rate of 50 a second binds", upstream{rate: 50, burst: 5, inflight: 20, latency: 200 * time.Millisecond}, 45},
		// 20 / (400 ms + 3 ms network) = 49.6. Admitted calls that wait for their start lower the rate.
		{"20 in flight bind", upstream{inflight: 20, latency: 400 * time.Millisecond}, 43},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			up := c.up
			w := newWorld(t, &up, nil)
			perSecond, share := w.run(40, 10*time.Second, 15*time.Second)
			t.Logf("%.1f a second, %.2f %% throttled, %d asks", perSecond, 100*share, w.asked)
			require.GreaterOrEqual(t, perSecond, c.least)
			require.Less(t, share, 0.02)
		})
	}
}

func TestKnownLimitsAreUsedAlmostFullyWithoutAThrottle(t *testing.T) {
	t.Parallel()
	up := upstream{rate: 50, burst: 5, inflight: 20, latency: 200 * time.Millisecond}
	w := newWorld(t, &up, oneSource(Limits{Concurrency: 20, RequestsPerMinute: 2970}))
	perSecond, share := w.run(40, 10*time.Second, 15*time.Second)
	t.Logf("%.2f a second of 49.5, %d asks", perSecond, w.asked)
	require.Zero(t, share)
	require.GreaterOrEqual(t, perSecond, 0.98*49.5)
}
