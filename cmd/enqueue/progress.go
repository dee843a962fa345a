package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"reprise/intake"
	"reprise/internal/cli"
	"reprise/internal/text"
)

// plainEvery is the time between two lines of progress without a terminal.
const plainEvery = 5 * time.Second

// progress shows the progress of a step: a bar on a terminal, else a line every plainEvery. With --quiet or --json it
// shows nothing. It is safe for concurrent use.
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
	return &progress{app: a, step: step, bars: cli.Terminal(a.Err), last: time.Now()}
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
			fmt.Fprintf(p.app.Err, "%s: %s of %s\n", p.step, text.Thousands(at.Done), text.Thousands(at.Total))
		}
		return
	}
	if p.bar == nil {
		p.set = mpb.New(mpb.WithOutput(p.app.Err), mpb.WithWidth(40))
		p.bar = p.set.AddBar(int64(at.Total),
			mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(p.step+" "), decor.CountersNoUnit("%d of %d")),
			mpb.AppendDecorators(decor.Percentage()),
		)
	}
	p.bar.SetCurrent(int64(at.Done))
}

// stop removes the bar.
func (p *progress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar == nil {
		return
	}
	p.bar.Abort(true)
	p.set.Wait()
}
