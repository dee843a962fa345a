package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"reprise/intake"
)

// consent asks before uploads are sent, and billed, once more. It returns nil
// when there is nothing to ask or the answer is yes.
func (a *app) consent(ctx context.Context, p *printer, plan *intake.Plan) error {
	n := plan.Counts().Resent
	if n == 0 || a.yes {
		return nil
	}
	what := fmt.Sprintf("--force sends again, and AudD bills again, what was sent before: %s, %s", uploads(n), p.money(int64(n)))
	if a.json || !terminal(a.std.in) || !terminal(a.std.err) {
		return &failure{exitUsage, errors.New(what + ": say --yes if you mean it; " + nothingQueued)}
	}
	fmt.Fprintf(a.std.err, "%s. Go on? [y/N] ", what)
	answer := make(chan string, 1)
	go func() { // a read cannot be stopped; the process ends soon after a signal
		line, _ := bufio.NewReader(a.std.in).ReadString('\n') // an error is no yes
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.std.err)
		return a.stopped(ctx, ctx.Err(), nothingQueued)
	case said := <-answer:
		if said == "y" || said == "yes" {
			return nil
		}
	}
	return &failure{exitNone, errors.New(nothingQueued)}
}

func uploads(n int) string {
	if n == 1 {
		return "1 upload"
	}
	return num(n) + " uploads"
}
