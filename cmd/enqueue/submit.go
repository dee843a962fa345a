package main

import (
	"context"
	"fmt"

	"reprise/intake"
	"reprise/tasks"
)

// submit is what recognize and enterprise do: plan, enqueue, wait, report.
func (a *app) submit(ctx context.Context, req intake.Request, args []string) error {
	if err := a.load(); err != nil {
		return err
	}
	if err := checkParams(req); err != nil {
		return &failure{exitUsage, err}
	}
	s, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	p := &printer{app: a, colour: terminal(a.std.out) && a.getenv("NO_COLOR") == ""}

	bar := a.newProgress("checking")
	plan, err := s.intake.Plan(ctx, req, args, bar.update)
	bar.stop()
	if err != nil {
		return a.stopped(ctx, err, "nothing was queued")
	}
	if a.dryRun {
		p.bad(plan)
		return p.finish(p.dryRun(plan), exitCode(plan))
	}
	bar = a.newProgress("queueing")
	err = s.intake.Enqueue(ctx, plan, bar.update)
	bar.stop()
	p.bad(plan)
	if err != nil {
		return p.interrupted(ctx, plan, err)
	}
	if !a.json {
		p.queued(plan)
	}
	if !a.wait {
		return p.finish(p.report(plan, nil), exitCode(plan))
	}
	return a.follow(ctx, s, p, plan)
}

// checkParams refuses flags no input could make right, before anything is opened.
func checkParams(req intake.Request) error {
	probe := tasks.Input{Kind: tasks.URLInput, URL: "http://localhost/"}
	_, err := tasks.New(req.Path, probe, req.Params, req.MaxUnits)
	return err
}

// follow prints the results as they arrive.
func (a *app) follow(ctx context.Context, s *session, p *printer, plan *intake.Plan) error {
	if n, err := s.intake.Workers(plan.Request.Path); err == nil && n == 0 {
		fmt.Fprintf(a.std.err, "enqueue: no worker serves %s on this Redis yet; results come when one starts\n", plan.Request.Path)
	}
	var rows []intake.Row
	err := s.intake.WaitPlan(ctx, plan, func(r intake.Row) {
		rows = append(rows, r)
		p.row(r)
	})
	if !a.json {
		p.results(rows)
	}
	if err != nil {
		return a.stopped(ctx, err, "the tasks stay queued; run the same command again to see the rest")
	}
	return p.finish(p.report(plan, rows), waitedCode(plan, rows))
}

// stopped turns the error of an interrupted step into a sentence.
func (a *app) stopped(ctx context.Context, err error, state string) error {
	// What failed because of the signal says so in several ways.
	if ctx.Err() != nil {
		code := exitNone
		if state != "nothing was queued" {
			code = exitSome
		}
		return &failure{code, fmt.Errorf("stopped: %s", state)}
	}
	return &failure{exitNone, err}
}

// exitCode is that of a plan as it stands.
func exitCode(plan *intake.Plan) int {
	c := plan.Counts()
	bad := c.ByVerdict[intake.Refused] + c.ByVerdict[intake.Failed]
	return codeOf(c.Found-bad, bad)
}

func waitedCode(plan *intake.Plan, rows []intake.Row) int {
	c := plan.Counts()
	bad, good := c.ByVerdict[intake.Refused]+c.ByVerdict[intake.Failed], 0
	for _, r := range rows {
		if r.Verdict == tasks.Done {
			good++
		} else {
			bad++
		}
	}
	return codeOf(good, bad)
}

func codeOf(good, bad int) int {
	switch {
	case good == 0:
		return exitNone
	case bad > 0:
		return exitSome
	}
	return exitOK
}
