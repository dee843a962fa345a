package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/store"
	"reprise/tasks"
	"reprise/test/rig"
	"reprise/worker"
)

// fleet is a rig with several workers.
type fleet struct {
	*rig.Rig

	gates   *admission.Gates // a separate client, as inspect has
	workers []*member
}

// member is a worker in the test process.
type member struct {
	*worker.Worker

	name string
	log  proctest.Output
	stop func()
}

const (
	mainSource = "main"
	mainToken  = "fleet-token-4e7a"
	recognize  = "recognize" // the queue without a group
	slots      = 8           // of a worker
)

// newFleet starts a rig without workers. Every content matches unless cfg says
// otherwise.
func newFleet(t *testing.T, cfg auddsim.Config) *fleet {
	t.Helper()
	f := &fleet{Rig: rig.New(t, cfg)}
	var err error
	f.gates, err = admission.New(f.Redis, admission.DefaultConfig())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.gates.Close()) })
	t.Cleanup(func() {
		for _, m := range f.workers {
			if t.Failed() {
				t.Logf("worker %s:\n%s", m.name, m.log.Tail())
			}
		}
	})
	return f
}

// options returns the options of every worker: attempts are practically
// unlimited, and permits outlast the delays of a busy machine.
func options(redisURL, baseURL string) worker.Options {
	o := worker.DefaultOptions()
	o.RedisURL, o.Admin.Addr = redisURL, ""
	o.Slots = worker.Slots{Recognize: slots}
	o.Sources = []worker.Source{account(mainSource, mainToken, baseURL)}
	o.Policy.MaxAttempts, o.Policy.MaxPossiblyBilled = 1000, 1000
	o.Policy.BackoffBase, o.Policy.BackoffMax = 100*time.Millisecond, time.Second
	o.Admission.PermitTTL, o.Admission.Timeout = 30*time.Second, 10*time.Second
	return o
}

func account(name, token, baseURL string) worker.Source {
	return worker.Source{Name: name, Token: func() string { return token }, BaseURL: baseURL + "/", EnterpriseURL: baseURL + "/enterprise/"}
}

// worker starts a worker and waits until it takes tasks.
func (f *fleet) worker(change func(*worker.Options)) *member {
	f.T.Helper()
	m := &member{name: fmt.Sprintf("w%d", len(f.workers)+1)}
	o := options(f.RedisURL(), f.Sim.URL)
	o.Log = slog.New(slog.NewJSONHandler(&m.log, nil))
	if change != nil {
		change(&o)
	}
	w, err := worker.New(f.T.Context(), o, f.Store)
	require.NoError(f.T, err)
	m.Worker = w
	f.workers = append(f.workers, m)
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.T.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	var once sync.Once
	m.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				f.T.Errorf("worker %s: %s", m.name, err)
			}
			if err := w.Close(); err != nil {
				f.T.Errorf("close worker %s: %s", m.name, err)
			}
		})
	}
	f.T.Cleanup(m.stop)
	select {
	case <-w.Ready():
	case err := <-ended:
		ended <- err
		require.NoError(f.T, err, "worker %s did not start", m.name)
	}
	return m
}

// start starts n workers with the same options.
func (f *fleet) start(n int, change func(*worker.Options)) {
	f.T.Helper()
	for range n {
		f.worker(change)
	}
}

// payloads makes n tasks with URLs, so that no files are needed.
func (f *fleet) payloads(name string, n int) []tasks.Payload {
	f.T.Helper()
	out := make([]tasks.Payload, n)
	for i := range out {
		p, err := tasks.New(tasks.Recognize, tasks.Input{Kind: tasks.URLInput, URL: fmt.Sprintf("https://audio.test/%s-%05d.mp3", name, i)}, tasks.Params{}, 0)
		require.NoError(f.T, err)
		out[i] = p
	}
	return out
}

// enqueueAtOnce is the number of connections that fill a queue.
const enqueueAtOnce = 16

// enqueue fills a group's queue through several connections.
func (f *fleet) enqueue(group string, payloads ...tasks.Payload) {
	f.T.Helper()
	rdb := f.Server.Client()
	client := asynq.NewClientFromRedisClient(rdb)
	work := make(chan tasks.Payload)
	var filling sync.WaitGroup
	for range min(enqueueAtOnce, len(payloads)) {
		filling.Go(func() {
			for p := range work {
				task, err := p.Task(group)
				if err == nil {
					_, err = client.EnqueueContext(context.WithoutCancel(f.T.Context()), task)
				}
				if err != nil {
					f.T.Errorf("enqueue %s: %s", p.Key, err)
				}
			}
		})
	}
	for _, p := range payloads {
		work <- p
	}
	close(work)
	filling.Wait()
	require.False(f.T, f.T.Failed())
}

// send makes n tasks and enqueues them.
func (f *fleet) send(group, name string, n int) []tasks.Payload {
	f.T.Helper()
	out := f.payloads(name, n)
	f.enqueue(group, out...)
	return out
}

// verdicts counts the tasks by verdict; unfinished tasks count as "".
func (f *fleet) verdicts(payloads []tasks.Payload) map[tasks.Verdict]int {
	f.T.Helper()
	out := map[tasks.Verdict]int{}
	for _, p := range payloads {
		s := f.Status(p)
		if !s.Finished {
			s.Verdict = ""
		}
		out[s.Verdict]++
	}
	return out
}

// waitDone waits until every task is done; archived tasks may still be replayed.
func (f *fleet) waitDone(payloads []tasks.Payload) {
	f.T.Helper()
	left := payloads
	proctest.Eventually(f.T, func() bool {
		for ; len(left) > 0; left = left[1:] {
			if s := f.Status(left[0]); !s.Finished || s.Verdict != tasks.Done {
				return false
			}
		}
		return true
	}, "verdicts %v, asynq has %+v", func() any { return f.verdicts(payloads) }, f.show)
}

// requireOnce requires one billed unit for every task, in the simulator's log and
// in the call rows.
func (f *fleet) requireOnce(payloads []tasks.Payload) {
	f.T.Helper()
	require.EqualValues(f.T, len(payloads), f.Sim.Sums().Units, "units billed")
	rows := map[string]int{}
	for _, c := range f.Calls(store.CallFilter{Limit: 10 * len(payloads)}) {
		rows[c.Key] += int(c.Units)
	}
	for _, p := range payloads {
		require.Equal(f.T, 1, rows[p.Key], "units in the call rows of %s", p.Input.URL)
	}
}
