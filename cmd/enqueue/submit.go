package main

import (
	"context"
	"errors"
	"fmt"

	"reprise/intake"
	"reprise/internal/cli"
	"reprise/internal/settings"
	"reprise/internal/text"
	"reprise/tasks"
)

// nothingQueued ends the message of a command that has queued nothing.
const nothingQueued = "nothing was queued"

// submit plans and queues the inputs of the command line.
func (a *app) submit(ctx context.Context, req intake.Request, args []string) error {
	return a.process(ctx, req, func(in *intake.Intake, progress func(intake.Progress)) (*intake.Plan, error) {
		return in.Plan(ctx, req, args, progress)
	})
}

// planner makes the plan of a command.
type planner func(in *intake.Intake, progress func(intake.Progress)) (*intake.Plan, error)

// process plans, queues, waits and reports for every sub-command.
func (a *app) process(ctx context.Context, req intake.Request, plans planner) error {
	a.cfg.Data = settings.DefaultData
	if err := a.LoadConnection(&a.cfg, a.set); err != nil {
		return err
	}
	if err := req.Validate(); err != nil {
		return cli.WithCode(cli.Usage, err)
	}
	in, closeAll, err := a.open(ctx, req.Path)
	if err != nil {
		return err
	}
	defer func() {
		if err := closeAll(); err != nil {
			a.warn("%s", cli.Sentence(err))
		}
	}()
	bar := a.newProgress("checking")
	plan, err := plans(in, bar.update)
	bar.stop()
	if err != nil {
		return stopped(ctx, err, nothingQueued)
	}
	if a.dryRun {
		a.printProblems(plan)
		return a.finish(plan, nil, a.printDryRun)
	}
	if err := a.consent(ctx, plan); err != nil {
		return err
	}
	bar = a.newProgress("queueing")
	err = in.Enqueue(ctx, plan, bar.update)
	bar.stop()
	a.printProblems(plan)
	switch {
	case err != nil:
		return a.interrupted(ctx, plan, err)
	case a.wait:
		return a.follow(ctx, in, plan)
	}
	return a.finish(plan, nil, a.printQueued)
}

// consent asks before uploads are sent, and billed, again.
func (a *app) consent(ctx context.Context, plan *intake.Plan) error {
	n := plan.Counts().Resent
	if n == 0 || a.yes {
		return nil
	}
	what := fmt.Sprintf("--force sends %s again, which AudD bills again: %s", text.Count(n, "upload", "uploads"), a.cfg.Money(int64(n)))
	if a.json || !a.Interactive() {
		a.printProblems(plan)
		return cli.Errorf(cli.Usage, "%s; confirm with --yes; %s", what, nothingQueued)
	}
	yes, err := a.Confirm(ctx, what+". Continue?")
	if err != nil {
		return stopped(ctx, err, nothingQueued)
	}
	if !yes {
		return errors.New(nothingQueued)
	}
	return nil
}

// follow prints the results as they arrive.
func (a *app) follow(ctx context.Context, in *intake.Intake, plan *intake.Plan) error {
	if !a.json {
		a.printQueued(plan)
	}
	if n, err := in.Workers(ctx, plan.Request.Path); err == nil && n == 0 {
		a.warn("no worker serves %s on this Redis yet; results arrive when a worker starts", plan.Request.Path)
	}
	var results []intake.Result
	err := in.Wait(ctx, plan, func(r intake.Result) {
		results = append(results, r)
		a.printResult(r)
	})
	if !a.json {
		a.printTotals(results)
	}
	if err != nil {
		if err := a.reportInterrupted(plan, results); err != nil {
			return err
		}
		return stopped(ctx, err, "the tasks stay queued; run the same command again to see the rest")
	}
	return a.finish(plan, results, nil)
}

// interrupted reports that Enqueue ended before all inputs were queued.
func (a *app) interrupted(ctx context.Context, plan *intake.Plan, err error) error {
	c := plan.Counts()
	queued, code := c.ByStatus[intake.Queued], cli.None
	if queued > 0 {
		code = cli.Partial
	}
	if err := a.reportInterrupted(plan, nil); err != nil {
		return err
	}
	if !a.json {
		a.printIDs(plan)
	}
	if ctx.Err() != nil {
		err = errors.New("stopped")
	}
	next := "run the same command again to continue, nothing is queued twice"
	if plan.Request.Force {
		next = "to continue, use --force only for the remaining inputs; inputs that are already done would be billed again"
	}
	return cli.Errorf(code, "%w: %s of %s are queued (batch %s); %s", err, text.Thousands(queued), inputs(c.Found), plan.Batch, next)
}

// reportInterrupted prints the JSON report of an interrupted command.
func (a *app) reportInterrupted(plan *intake.Plan, results []intake.Result) error {
	if !a.json {
		return nil
	}
	r := a.report(plan, results)
	r.Interrupted = true
	return a.JSON(r)
}

// stopped returns the error of an interrupted step. state is the last part of its text: what is queued, and the
// next step.
func stopped(ctx context.Context, err error, state string) error {
	if _, ok := errors.AsType[*intake.UnknownNameError](err); ok {
		return cli.WithCode(cli.Usage, err)
	}
	if ctx.Err() == nil { // else err is a consequence of the signal
		return err
	}
	code := cli.Partial
	if state == nothingQueued {
		code = cli.None
	}
	return cli.Errorf(code, "stopped: %s", state)
}

// finish prints the JSON report, or calls show for text, which may be nil. Its error is the exit code.
func (a *app) finish(plan *intake.Plan, results []intake.Result, show func(*intake.Plan)) error {
	if a.json {
		if err := a.JSON(a.report(plan, results)); err != nil {
			return err
		}
	} else if show != nil {
		show(plan)
	}
	c := plan.Counts()
	bad := c.ByStatus[intake.Refused] + c.ByStatus[intake.Failed]
	good := c.Found - bad
	if a.wait && !a.dryRun {
		good = 0
		for _, r := range results {
			if r.Verdict == tasks.Done {
				good++
			} else {
				bad++
			}
		}
	}
	switch {
	case good == 0:
		return &cli.Error{Code: cli.None}
	case bad > 0:
		return &cli.Error{Code: cli.Partial}
	}
	return nil
}
