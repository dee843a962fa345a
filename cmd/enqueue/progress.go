package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"reprise/intake"
)

// plainEvery is how often progress is a line where there is no terminal.
const plainEvery = 5 * time.Second

// progress shows how far a step is: a bar on a terminal, else now and then a
// line, nothing with --quiet. It is safe for concurrent use.
type progress struct {
	app  *app
	step string
	bars bool

	mu   sync.Mutex
	done int
	set  *mpb.Progress
	bar  *mpb.Bar
	last time.Time
}

func (a *app) newProgress(step string) *progress {
	return &progress{app: a, step: step, bars: terminal(a.std.err), last: time.Now()}
}

func (p *progress) update(at intake.Progress) {
	if p.app.quiet || p.app.json {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.Done <= p.done { // goroutines may report out of order
		return
	}
	p.done = at.Done
	if !p.bars {
		if now := time.Now(); now.Sub(p.last) >= plainEvery {
			p.last = now
			fmt.Fprintf(p.app.std.err, "%s: %s of %s\n", p.step, thousands(int64(at.Done)), thousands(int64(at.Total)))
		}
		return
	}
	if p.bar == nil {
		p.set = mpb.New(mpb.WithOutput(p.app.std.err), mpb.WithWidth(40))
		p.bar = p.set.AddBar(int64(at.Total),
			mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(p.step+" "), decor.CountersNoUnit("%d of %d")),
			mpb.AppendDecorators(decor.Percentage()),
		)
	}
	p.bar.SetCurrent(int64(at.Done))
}

// stop takes the bar away.
func (p *progress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar == nil {
		return
	}
	p.bar.Abort(true)
	p.set.Wait()
}
