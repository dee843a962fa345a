package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"reprise/admission"
	"reprise/tasks"
)

// forwardEvery is how often asynq moves due retries to pending. asynq's 5 s
// would release every due task in one burst and make short delays useless.
const forwardEvery = time.Second

// groupsEvery is how often the groups in force are read: a new group's queue
// is served that soon.
const groupsEvery = 2 * time.Second

// manySlots is from where on the slots of a plan are halved between two asynq
// servers. A server fetches one task after another, a round trip each, and
// stands still while Redis decides a batch of admissions; two keep many slots
// filled (docs/adr/0010-two-servers-for-many-slots.md).
const manySlots = 64

// fleet is the asynq servers of a worker. A path has its own over all its
// queues, by weight, and is a bulkhead: slow enterprise calls cannot take a
// clip's slot. A group with a share of the slots has servers of its own beside
// them, because asynq bounds concurrency per server only.
type fleet struct {
	w       *Worker
	mu      sync.Mutex
	running map[string]*asynq.Server // by plan
	limits  []admission.Limit        // in force when they were last read
	stopped bool
	retired sync.WaitGroup // servers that were replaced and still drain
}

// plan is one server: its path, slots and queues, and which of several alike.
type plan struct {
	path   tasks.Path
	slots  int
	queues map[string]int
	nth    int
}

// name tells plans apart: equal names are the same server.
func (p plan) name() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%d/%d", p.path, p.nth, p.slots)
	for _, q := range slices.Sorted(maps.Keys(p.queues)) {
		fmt.Fprintf(&b, " %s=%d", q, p.queues[q])
	}
	return b.String()
}

// plans are the servers for the limits in force.
func (w *Worker) plans(limits []admission.Limit) []plan {
	weights, shares := map[string]int{}, map[string]int{}
	for _, l := range limits {
		group, ok := strings.CutPrefix(l.Scope, "group/")
		if !ok {
			continue
		}
		weights[group] = max(weights[group], 1) // a group of any limit has its queue
		n, err := strconv.Atoi(l.Value)
		if err != nil {
			continue
		}
		switch l.Name {
		case "weight":
			weights[group] = max(n, 1)
		case "slot_share":
			shares[group] = n
		}
	}
	var out []plan
	for _, path := range w.usable() {
		slots := w.opts.Slots.of(path)
		shared := plan{path: path, slots: slots, queues: map[string]int{path.Queue(""): 1}}
		for group, weight := range weights {
			if share := shares[group]; share > 0 && share < 1000 {
				own := max(1, slots*share/1000)
				out = append(out, plan{path: path, slots: own, queues: map[string]int{path.Queue(group): 1}}.spread()...)
				continue
			}
			shared.queues[path.Queue(group)] = weight
		}
		out = append(out, shared.spread()...)
	}
	return out
}

// spread makes one or two servers of a plan.
func (p plan) spread() []plan {
	if p.slots < manySlots {
		return []plan{p}
	}
	other := p
	other.nth, other.slots, other.queues = 1, p.slots/2, maps.Clone(p.queues)
	p.slots -= other.slots
	return []plan{p, other}
}

// attended are the plans without the queues this worker sits out.
func (f *fleet) attended(plans []plan) []plan {
	var out []plan
	for _, p := range plans {
		maps.DeleteFunc(p.queues, func(queue string, _ int) bool { return f.w.sitout.has(queue) })
		if len(p.queues) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// refresh serves the queues that are to be served now.
func (f *fleet) refresh() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.reshapeLocked(f.w.plans(f.limits)); err != nil {
		f.w.warn.do("groups", "the queues cannot be served", err)
	}
}

// queues are all queues this worker serves now.
func (f *fleet) queues() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for name := range f.running {
		for _, q := range strings.Fields(name)[1:] {
			queue, _, _ := strings.Cut(q, "=")
			out = append(out, queue)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// reshape serves what the limits ask for.
func (f *fleet) reshape(limits []admission.Limit) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limits = limits
	return f.reshapeLocked(f.w.plans(limits))
}

// reshapeLocked starts the servers that are wanted and not there, and retires
// those that are there and not wanted: they take nothing new and finish what
// runs.
func (f *fleet) reshapeLocked(wanted []plan) error {
	if f.stopped {
		return nil
	}
	next := map[string]*asynq.Server{}
	for _, p := range f.attended(wanted) {
		if srv, ok := f.running[p.name()]; ok {
			next[p.name()] = srv
			continue
		}
		srv := f.w.newServer(p)
		if err := srv.Start(asynq.HandlerFunc(f.w.deliver)); err != nil {
			return fmt.Errorf("start the server for %s: %w", p.name(), err)
		}
		next[p.name()] = srv
	}
	for name, srv := range f.running {
		if next[name] == nil {
			srv.Stop()
			f.retired.Go(srv.Shutdown)
		}
	}
	f.running = next
	return nil
}

// watch follows the groups in force until ctx ends.
func (f *fleet) watch(ctx context.Context) {
	tick := time.NewTicker(groupsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if f.w.isStopping() {
			return
		}
		limits, _, err := f.w.gates.LimitsInForce(ctx)
		if err != nil {
			continue // admission says so itself
		}
		if err := f.reshape(limits); err != nil {
			f.w.warn.do("groups", "the groups in force cannot be served", err)
		}
	}
}

// stop ends all servers together: the drain is as long as the longest of them.
func (f *fleet) stop() {
	f.mu.Lock()
	f.stopped = true
	servers := slices.Collect(maps.Values(f.running))
	f.mu.Unlock() // a delivery may want to reshape before it ends
	for _, s := range servers {
		s.Stop()
	}
	f.w.shut()
	f.w.queue.Stopping()
	var group sync.WaitGroup
	for _, s := range servers {
		group.Go(s.Shutdown)
	}
	group.Wait()
	f.retired.Wait()
}

func (w *Worker) newServer(p plan) *asynq.Server {
	return asynq.NewServerFromRedisClient(w.queue, asynq.Config{
		Concurrency:              p.slots,
		Queues:                   p.queues,
		TaskCheckInterval:        w.opts.TaskCheckInterval,
		DelayedTaskCheckInterval: forwardEvery,
		IsFailure:                isFailure,
		RetryDelayFunc:           retryDelay,
		ErrorHandler:             asynq.ErrorHandlerFunc(w.heard),
		ShutdownTimeout:          w.opts.drain() + settleMargin,
		Logger:                   asynqLog{w.log.With("component", "asynq", "path", string(p.path))},
		LogLevel:                 asynq.WarnLevel,
	})
}
