package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"reprise/idempotency"
	"reprise/tasks"
)

// call is one worker's attempt at some step of its way: made, latched, past
// Fresh (from here it may freeze and still send), sent, ended.
type call struct {
	attempt idempotency.LatchRequest
	step    string
	right   idempotency.Latched
	report  tasks.LatchEffect // what it has reported, "" for nothing
}

// model is what the promise says about one key, beside the real ledger.
type model struct {
	claim      idempotency.Claim
	generation int64
	state      idempotency.State
	sentAt     time.Time
	sends      map[int64]int // bytes that left, by generation
	// unreleased counts automatic sends since the last raise by a person that
	// their attempts have not reported as released.
	unreleased map[string]bool
}

// world drives many workers, people and a clock over one ledger.
type world struct {
	l     *idempotency.Ledger
	now   time.Time
	keys  []*model
	calls []*call
	n     int
	turn  int
	run   string
	seen  map[string]int // what happened over all runs, so that the test is known to test something
}

const (
	made, latched, passed, sent, ended = "made", "latched", "passed", "sent", "ended"
)

func (w *world) key(t *rapid.T) *model { return rapid.SampledFrom(w.keys).Draw(t, "key") }

// pick draws a call that stands at one of the steps, or skips the action.
func (w *world) pick(t *rapid.T, steps ...string) *call {
	var fit []*call
	for _, c := range w.calls {
		for _, s := range steps {
			if c.step == s {
				fit = append(fit, c)
			}
		}
	}
	if len(fit) == 0 {
		t.Skip("no call at this step")
	}
	return rapid.SampledFrom(fit).Draw(t, "call")
}

func (w *world) model(key string) *model {
	for _, m := range w.keys {
		if m.claim.Key == key {
			return m
		}
	}
	return nil
}

func (w *world) act() idempotency.Action {
	return idempotency.Action{By: "mia", Why: "test", At: w.now}
}

func (w *world) make(t *rapid.T) {
	m := w.key(t)
	w.n++
	a := attemptFor(m.claim, fmt.Sprintf("%s-%d", w.run, w.n))
	a.Source, a.At = m.claim.Source, w.now
	w.calls = append(w.calls, &call{attempt: a, step: made})
}

// latch may come long after the attempt read its clock.
func (w *world) latch(t *rapid.T, c *call) {
	m := w.model(c.attempt.Key)
	got, err := w.l.Latch(context.Background(), c.attempt)
	if err != nil {
		c.step = ended
		return
	}
	require.Equal(t, idempotency.Free, m.state, "a latch where nothing was free")
	require.Equal(t, m.generation, got.Generation)
	c.step, c.right = latched, got
	m.state, m.sentAt = idempotency.Sent, c.attempt.At
}

func (w *world) firstByteAllowed(t *rapid.T, c *call) {
	if c.right.Fresh(w.now) != nil {
		w.report(t, c) // stale: it ends without a byte
		return
	}
	c.step = passed
}

// send lets bytes leave: the moment that is paid.
func (w *world) send(t *rapid.T, c *call) {
	m := w.model(c.attempt.Key)
	c.step = sent
	w.seen["send"]++
	m.sends[c.right.Generation]++
	require.Equal(t, 1, m.sends[c.right.Generation], "two sends of generation %d", c.right.Generation)
	if c.right.Generation != m.generation {
		return // a freeze longer than a person's wait: the documented residual
	}
	require.Empty(t, m.unreleased, "an automatic send after one that was not released")
	m.unreleased[c.attempt.AttemptID] = true
}

// report is truthful: only what never sent, or was refused before work, releases.
func (w *world) report(t *rapid.T, c *call) {
	effect := c.report
	if effect == "" {
		effect = rapid.SampledFrom(effects).Draw(t, "effect")
		if c.step != sent {
			effect = tasks.LatchReleased
		}
	}
	got, err := w.l.Conclude(context.Background(), c.attempt.AttemptID, idempotency.Conclusion{
		Effect: effect, Outcome: outcomes[effect], At: w.now,
	})
	require.NoError(t, err)
	c.step, c.report = ended, effect
	m := w.model(c.attempt.Key)
	if got == "" || c.right.Generation != m.generation {
		return
	}
	was := m.state
	m.state = got
	if got == idempotency.Released {
		require.Equal(t, idempotency.Sent, was, "only what is on its way is released")
		delete(m.unreleased, c.attempt.AttemptID)
		m.generation, m.state = m.generation+1, idempotency.Free
		w.seen["release"]++
	}
}

// advance lets one worker go one step of its way.
func (w *world) advance(t *rapid.T) {
	c := w.pick(t, made, latched, passed, sent)
	map[string]func(*rapid.T, *call){
		made: w.latch, latched: w.firstByteAllowed, passed: w.send, sent: w.report,
	}[c.step](t, c)
}

// again repeats a report, or releases before the first byte.
func (w *world) again(t *rapid.T) { w.report(t, w.pick(t, latched, ended)) }

// crash ends a worker without a word, at any step.
func (w *world) crash(t *rapid.T) {
	c := w.pick(t, made, latched, passed, sent)
	c.step, c.report = "crashed", ""
}

func (w *world) expire(t *rapid.T) {
	m := w.key(t)
	st, err := w.l.Expire(context.Background(), m.claim.Key, w.now)
	require.NoError(t, err)
	if m.state == idempotency.Sent && !w.now.Before(m.sentAt.Add(timeout+margin)) {
		m.state = idempotency.Uncertain
	}
	require.Equal(t, m.state, st.State)
}

func (w *world) resolve(t *rapid.T) {
	m := w.key(t)
	as := rapid.SampledFrom(both).Draw(t, "as")
	got, err := w.l.Resolve(context.Background(), m.claim.Key, as, w.act())
	if err != nil || got.Already {
		return
	}
	require.Contains(t, []idempotency.State{idempotency.Sent, idempotency.Uncertain}, m.state)
	require.False(t, w.now.Before(m.sentAt.Add(timeout)) && as == idempotency.AsRetry)
	w.seen["resolve as "+string(as)]++
	if m.state = idempotency.Settled; as == idempotency.AsRetry {
		m.raisedByPerson()
	}
}

func (m *model) raisedByPerson() {
	m.generation, m.state = m.generation+1, idempotency.Free
	clear(m.unreleased)
}

func (w *world) reopen(t *rapid.T) {
	m := w.key(t)
	got, err := w.l.Reopen(context.Background(), m.claim.Key, m.generation, w.act())
	if err == nil && got > m.generation {
		m.raisedByPerson()
	}
}

func (w *world) claim(t *rapid.T) {
	m := w.key(t)
	c := m.claim
	c.Replace, c.By, c.At = rapid.Bool().Draw(t, "replace"), "mia", w.now
	got, err := w.l.Claim(context.Background(), c)
	require.NoError(t, err)
	if got[0].Reopened {
		m.raisedByPerson()
	}
}

func (w *world) pass(t *rapid.T) {
	steps := []time.Duration{time.Second, time.Second, 4 * time.Second, 6 * time.Second, timeout, timeout + margin, timeout + retryWait}
	w.now = w.now.Add(rapid.SampledFrom(steps).Draw(t, "step"))
}

// check compares one key after the other with its model, one for each action:
// a difference stays and is found a step later.
func (w *world) check(t *rapid.T) {
	w.turn++
	m := w.keys[w.turn%len(w.keys)]
	st, err := w.l.Status(context.Background(), m.claim.Key)
	require.NoError(t, err)
	require.Equal(t, m.generation, st.Generation, "nobody else raises the generation")
	require.Equal(t, m.state, st.State)
}

func TestNoScheduleCausesTwoAutomaticSends(t *testing.T) {
	t.Parallel()
	l, _ := open(t, filepath.Join(t.TempDir(), "reprise.db"))
	runs, seen := 0, map[string]int{}
	schedules := func(t *rapid.T) {
		runs++
		w := &world{l: l, now: start, run: fmt.Sprint("run", runs), seen: seen}
		for i, slot := range []int64{1, 2, 2} { // two contents fight for one slot
			c := other(slot, fmt.Sprintf("%s-key%d", w.run, i), false)
			c.Source = w.run
			w.keys = append(w.keys, &model{claim: c, state: idempotency.Free, sends: map[int64]int{}, unreleased: map[string]bool{}})
		}
		for range 3 {
			w.make(t)
		}
		t.Repeat(map[string]func(*rapid.T){ // a name more often is an action more often
			"make": w.make, "advance": w.advance, "advance 2": w.advance, "advance 3": w.advance, "advance 4": w.advance,
			"again": w.again, "crash": w.crash, "expire": w.expire, "expire 2": w.expire, "resolve": w.resolve,
			"resolve 2": w.resolve, "reopen": w.reopen, "claim": w.claim, "pass": w.pass, "": w.check,
		})
	}
	all := []string{"send", "release", "resolve as settled", "resolve as retry"}
	missing := func() bool { return slices.ContainsFunc(all, func(what string) bool { return seen[what] == 0 }) }
	for try := 1; try == 1 || missing() && try <= 20; try++ { // few runs may leave something out by chance
		rapid.Check(t, schedules)
	}
	t.Log(seen)
	require.False(t, missing(), "want all of %q", all)
}

// The same with real concurrency: workers, latecomers and an expirer on one key,
// through two pools. Sends ≤ 1 + releases + retries, one for each generation.
func TestConcurrentWorkersSendOncePerGeneration(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "reprise.db")
	one, _ := open(t, file)
	two, _ := open(t, file)
	var mu sync.Mutex
	sends := map[int64]int{}
	released := 0
	var wg sync.WaitGroup
	for i := range 8 {
		l := one
		if i%2 == 0 {
			l = two
		}
		random := rand.New(rand.NewPCG(7, uint64(i)))
		wg.Go(func() {
			for n := range 15 {
				a := attempt(1, fmt.Sprintf("%d-%d", i, n))
				got, err := l.Latch(context.Background(), a)
				if _, is := errors.AsType[*idempotency.TakenError](err); is {
					if _, err := l.Expire(context.Background(), "k1", start.Add(time.Second)); err != nil {
						t.Error(err)
					}
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				effect := tasks.LatchReleased
				mu.Lock()
				sends[got.Generation]++
				if random.IntN(40) == 0 {
					effect = tasks.LatchUncertain
				} else {
					released++
				}
				mu.Unlock()
				for range 2 { // every report is made twice
					_, err = l.Conclude(context.Background(), a.AttemptID, idempotency.Conclusion{Effect: effect, Outcome: tasks.Throttled, At: start})
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for generation, n := range sends {
		require.Equal(t, 1, n, "generation %d", generation)
		total += n
	}
	require.LessOrEqual(t, total, released+1)
	require.Equal(t, int64(released), look(t, one, "k1").Generation)
}
