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

// call is one worker's attempt. Its step is made, latched, passed, sent or ended. passed means that Fresh returned
// nil, so the worker may still pause and then send.
type call struct {
	attempt idempotency.LatchRequest
	step    string
	right   idempotency.Latched
	report  tasks.LatchEffect // the attempt's report; "" = none
}

// model is the expected state of one key.
type model struct {
	claim      idempotency.Claim
	generation int64
	state      idempotency.State
	sentAt     time.Time
	sends      map[int64]int // number of sends per generation
	// unreleased has the automatic sends since an operator last raised the generation, without the sends that were
	// reported as released.
	unreleased map[string]bool
}

// world simulates workers, operators and a clock that use one ledger.
type world struct {
	l     *idempotency.Ledger
	now   time.Time
	keys  []*model
	calls []*call
	n     int
	turn  int
	run   string
	seen  map[string]int // how often each event happened in all runs; every event must happen
}

const (
	made, latched, passed, sent, ended = "made", "latched", "passed", "sent", "ended"
)

func (w *world) key(t *rapid.T) *model { return rapid.SampledFrom(w.keys).Draw(t, "key") }

// pick returns a random call at one of the steps, or skips the action if there is none.
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

// latch latches the call. It may run long after the attempt read its clock.
func (w *world) latch(t *rapid.T, c *call) {
	m := w.model(c.attempt.Key)
	got, err := w.l.Latch(context.Background(), c.attempt)
	if err != nil {
		c.step = ended
		return
	}
	require.Equal(t, idempotency.Free, m.state, "a latch of a key that was not free")
	require.Equal(t, m.generation, got.Generation)
	c.step, c.right = latched, got
	m.state, m.sentAt = idempotency.Sent, c.attempt.At
}

func (w *world) firstByteAllowed(t *rapid.T, c *call) {
	if c.right.Fresh(w.now) != nil {
		w.report(t, c) // stale, so the call ends without a send
		return
	}
	c.step = passed
}

// send sends the body, which AudD may bill.
func (w *world) send(t *rapid.T, c *call) {
	m := w.model(c.attempt.Key)
	c.step = sent
	w.seen["send"]++
	m.sends[c.right.Generation]++
	require.Equal(t, 1, m.sends[c.right.Generation], "two sends of generation %d", c.right.Generation)
	if c.right.Generation != m.generation {
		return // the worker paused longer than an operator waits, which is the documented remaining risk
	}
	require.Empty(t, m.unreleased, "a second automatic send, although the first was not released")
	m.unreleased[c.attempt.AttemptID] = true
}

// report reports what happened. It reports released only if nothing was sent or AudD refused the call before any
// work.
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
		require.Equal(t, idempotency.Sent, was, "only a send in flight can be released")
		delete(m.unreleased, c.attempt.AttemptID)
		m.generation, m.state = m.generation+1, idempotency.Free
		w.seen["release"]++
	}
}

// advance moves one random worker to its next step.
func (w *world) advance(t *rapid.T) {
	c := w.pick(t, made, latched, passed, sent)
	map[string]func(*rapid.T, *call){
		made: w.latch, latched: w.firstByteAllowed, passed: w.send, sent: w.report,
	}[c.step](t, c)
}

// again repeats a report, or reports released before the first byte is sent.
func (w *world) again(t *rapid.T) { w.report(t, w.pick(t, latched, ended)) }

// crash ends a worker at any step, without a report.
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

// check compares one key with its model after each action, in rotation. A difference persists, so check finds it a
// few actions later.
func (w *world) check(t *rapid.T) {
	w.turn++
	m := w.keys[w.turn%len(w.keys)]
	st, err := w.l.Status(context.Background(), m.claim.Key)
	require.NoError(t, err)
	require.Equal(t, m.generation, st.Generation, "only the modelled actions raise the generation")
	require.Equal(t, m.state, st.State)
}

func TestEachGenerationIsSentOnceInAnySchedule(t *testing.T) {
	t.Parallel()
	l, _ := open(t, filepath.Join(t.TempDir(), "reprise.db"))
	runs, seen := 0, map[string]int{}
	schedules := func(t *rapid.T) {
		runs++
		w := &world{l: l, now: start, run: fmt.Sprint("run", runs), seen: seen}
		for i, slot := range []int64{1, 2, 2} { // two files compete for one slot
			c := other(slot, fmt.Sprintf("%s-key%d", w.run, i), false)
			c.Source = w.run
			w.keys = append(w.keys, &model{claim: c, state: idempotency.Free, sends: map[int64]int{}, unreleased: map[string]bool{}})
		}
		for range 3 {
			w.make(t)
		}
		t.Repeat(map[string]func(*rapid.T){ // actions that are listed twice run more often
			"make": w.make, "advance": w.advance, "advance 2": w.advance, "advance 3": w.advance, "advance 4": w.advance,
			"again": w.again, "crash": w.crash, "expire": w.expire, "expire 2": w.expire, "resolve": w.resolve,
			"resolve 2": w.resolve, "reopen": w.reopen, "claim": w.claim, "pass": w.pass, "": w.check,
		})
	}
	all := []string{"send", "release", "resolve as settled", "resolve as retry"}
	missing := func() bool { return slices.ContainsFunc(all, func(what string) bool { return seen[what] == 0 }) }
	for try := 1; try == 1 || missing() && try <= 20; try++ { // one set of runs may miss an event
		rapid.Check(t, schedules)
	}
	t.Log(seen)
	require.False(t, missing(), "expected all of %q", all)
}

// Workers on two connection pools latch, conclude and expire one key at the same time. Each generation is sent once,
// and there are at most 1 + releases generations.
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
				for range 2 { // each report is repeated
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
