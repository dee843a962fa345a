package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/admission"
	"reprise/tasks"
)

func newPause(a *app) *cobra.Command {
	var why string
	var only bool
	cmd := &cobra.Command{
		Use:   "pause QUEUE|PATH…",
		Short: "Stop taking tasks from queues until resumed (costs nothing)",
		Long: `A path (recognize, enterprise, upload) stands for its queue and those of its groups; --only keeps it to the one queue.
Calls under way finish. A person's pause stays until a person resumes it, whatever the gates do.`,
		Example: `  inspect pause recognize --why "price talks"
  inspect pause recognize.archive
  inspect pause upload --only --by alice`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), needsRedis, func(ctx context.Context, s *session) error {
				return s.pause(ctx, args, only, why)
			})
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "reason, shown where people ask why it stands still")
	cmd.Flags().BoolVar(&only, "only", false, "only the path's own queue, not those of its groups")
	return cmd
}

// pauseRow is what a pause or resume of a queue came to, for --json.
type pauseRow struct {
	Queue   string      `json:"queue"`
	Changed bool        `json:"changed"`
	Paused  bool        `json:"paused"`
	Reasons []reasonRow `json:"reasons"`
}

func (s *session) pause(ctx context.Context, args []string, only bool, why string) error {
	who := s.by()
	queues, err := s.targets(ctx, args, only)
	if err != nil {
		return err
	}
	rows := []pauseRow{}
	for _, queue := range queues {
		if _, err := s.reconcile(ctx, queue); err != nil { // what was done elsewhere comes first
			return err
		}
		_, changed, err := s.pauses.Add(ctx, queue, admission.PauseReason{Name: admission.ReasonManual, By: who, Evidence: why})
		if err != nil {
			return err
		}
		state, err := s.reconcile(ctx, queue)
		if err == nil {
			state, err = s.truth(ctx, queue, state)
		}
		if err != nil {
			return err
		}
		rows = append(rows, pauseRow{queue, changed, state.Paused(), reasonRows(state)})
		if !s.json {
			s.paused(queue, changed, state)
		}
	}
	if s.json {
		return s.writeJSON(rows)
	}
	return nil
}

func (s *session) paused(queue string, changed bool, state admission.PauseState) {
	if changed {
		s.line("%s paused: %s", queue, s.reasons(state, true))
		return
	}
	s.line("%s was paused already: %s", queue, s.reasons(state, true))
}

// resumeQueues takes a person's pause away. Automatic reasons stay.
func (s *session) resumeQueues(ctx context.Context, args []string, only bool) error {
	queues, err := s.targets(ctx, args, only)
	if err != nil {
		return err
	}
	rows := []pauseRow{}
	for _, queue := range queues {
		if _, err := s.reconcile(ctx, queue); err != nil {
			return err
		}
		_, changed, err := s.pauses.Remove(ctx, queue, admission.ReasonManual)
		if err != nil {
			return err
		}
		state, err := s.reconcile(ctx, queue)
		if err == nil {
			state, err = s.truth(ctx, queue, state)
		}
		if err != nil {
			return err
		}
		rows = append(rows, pauseRow{queue, changed, state.Paused(), reasonRows(state)})
		if s.json {
			continue
		}
		switch {
		case state.Paused():
			s.line("%s stays paused: %s", queue, s.reasons(state, true))
			s.line("  an automatic reason ends with its cause: see inspect halts, inspect sources")
		case changed:
			s.line("%s runs", queue)
		default:
			s.line("%s was not paused", queue)
		}
	}
	if s.json {
		return s.writeJSON(rows)
	}
	return nil
}

// targets are the queues the arguments stand for, in their order, each once.
func (s *session) targets(ctx context.Context, args []string, only bool) ([]string, error) {
	g, err := s.gates(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.queues(g)
	if err != nil {
		return nil, err
	}
	return expandTargets(args, only, all)
}

func expandTargets(args []string, only bool, all []string) ([]string, error) {
	var out []string
	seen := map[string]bool{}
	add := func(q string) {
		if !seen[q] {
			seen[q] = true
			out = append(out, q)
		}
	}
	for _, arg := range args {
		if strings.Contains(arg, "/") {
			return nil, usage("%s is a source and path: halt it with `inspect halt %s`", shownName(arg), shownName(arg))
		}
		path, group, err := tasks.SplitQueue(arg)
		if err != nil {
			return nil, usage("%w%s", err, didYouMean(arg, all))
		}
		if group != "" && !slices.Contains(all, arg) {
			return nil, usage("no queue %s%s (inspect queues lists them)", shownName(arg), didYouMean(arg, all))
		}
		if group != "" || only {
			add(arg)
			continue
		}
		for _, q := range all {
			if p, _, err := tasks.SplitQueue(q); err == nil && p == path {
				add(q)
			}
		}
	}
	return out, nil
}

// reconcile brings asynq's flag in line with the reasons, as every worker does
// each second, so that a command works when no worker runs.
func (s *session) reconcile(ctx context.Context, queue string) (admission.PauseState, error) {
	for range 50 {
		state, err := s.pauses.State(ctx, queue)
		if err != nil {
			return state, err
		}
		flag, err := s.flag(ctx, queue)
		if err != nil {
			return state, err
		}
		action := admission.Reconcile(state, flag)
		err = s.pauses.Apply(ctx, queue, state, action, flagSetter{s, ctx})
		switch {
		case errors.Is(err, admission.ErrRaced): // a worker was faster: look again
		case err != nil:
			return state, err
		case action == admission.ActionNone:
			return state, nil
		}
	}
	return admission.PauseState{}, fmt.Errorf("reconcile queue %s: workers change it all the time", queue)
}

// flagSetter sets asynq's flag. That somebody else has just done so is no error.
type flagSetter struct {
	s   *session
	ctx context.Context //nolint:containedctx // lives for one call; asynq's methods take none
}

func (f flagSetter) PauseQueue(queue string) error {
	return f.unless(true, queue, f.s.asynq.PauseQueue(queue))
}

func (f flagSetter) UnpauseQueue(queue string) error {
	return f.unless(false, queue, f.s.asynq.UnpauseQueue(queue))
}

func (f flagSetter) unless(want bool, queue string, err error) error {
	if err == nil {
		return nil
	}
	if flag, readErr := f.s.flag(f.ctx, queue); readErr == nil && flag == want {
		return nil
	}
	return err
}
