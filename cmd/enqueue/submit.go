package main

import (
	"context"
	"errors"
	"fmt"

	"reprise/intake"
	"reprise/tasks"
)

// nothingQueued is how a command ends that changed nothing.
const nothingQueued = "nothing was queued"

// submit does what a command is for, with inputs from the command line.
func (a *app) submit(ctx context.Context, req intake.Request, args []string) error {
	return a.process(ctx, req, func(s *session, progress func(intake.Progress)) (*intake.Plan, error) {
		return s.intake.Plan(ctx, req, args, progress)
	})
}

// planner makes the plan of a command.
type planner func(s *session, progress func(intake.Progress)) (*intake.Plan, error)

// process is what all commands do: plan, enqueue, wait, report.
func (a *app) process(ctx context.Context, req intake.Request, plans planner) error {
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
	plan, err := plans(s, bar.update)
	bar.stop()
	if err != nil {
		return a.stopped(ctx, err, nothingQueued)
	}
	if a.dryRun {
		p.bad(plan)
		p.warnings(plan)
		return p.finish(p.dryRun(plan), exitCode(plan))
	}
	if err := a.consent(ctx, p, plan); err != nil {
		p.bad(plan)
		return err
	}
	bar = a.newProgress("queueing")
	err = s.intake.Enqueue(ctx, plan, bar.update)
	bar.stop()
	p.bad(plan)
	p.warnings(plan)
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
	if req.Path == tasks.Upload && req.Params.AudioID == nil {
		req.Params.AudioID = new(int64) // each input has its own
	}
	_, err := tasks.New(req.Path, probe, req.Params, req.MaxUnits)
	return errors.Join(tasks.ValidateGroup(req.Group), err)
}

// follow prints the results as they arrive.
func (a *app) follow(ctx context.Context, s *session, p *printer, plan *intake.Plan) error {
	if n, err := s.intake.Workers(ctx, plan.Request.Path); err == nil && n == 0 {
		fmt.Fprintf(a.std.err, "enqueue: no worker serves %s on this Redis yet; results come when one starts\n", plan.Request.Path)
	}
	var rows []intake.Result
	err := s.intake.Wait(ctx, plan, func(r intake.Result) {
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
		if state != nothingQueued {
			code = exitSome
		}
		return &failure{code, fmt.Errorf("stopped: %s", state)}
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if _, ok := errors.AsType[*intake.UnknownNameError](err); ok {
		return &failure{exitUsage, err}
	}
	return &failure{exitNone, err}
}

// exitCode is that of a plan as it stands.
func exitCode(plan *intake.Plan) int {
	c := plan.Counts()
	bad := c.ByStatus[intake.Refused] + c.ByStatus[intake.Failed]
	return codeOf(c.Found-bad, bad)
}

func waitedCode(plan *intake.Plan, rows []intake.Result) int {
	c := plan.Counts()
	bad, good := c.ByStatus[intake.Refused]+c.ByStatus[intake.Failed], 0
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
