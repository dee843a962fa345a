package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reprise/admission"
	"reprise/tasks"
)

func newResume(a *app) *cobra.Command {
	var only, dryRun bool
	cmd := &cobra.Command{
		Use:   "resume QUEUE|PATH|SOURCE/PATH…",
		Short: "Take a person's pause away, or probe a halted source (the probe is a waiting task's own call)",
		Long: `QUEUE or PATH: takes a person's pause away; costs nothing by itself. Automatic reasons stay: they end with their cause.
SOURCE/PATH (* for all): sets a halted or broken source half-open. A worker probes it with the first waiting task, which
costs the units of that call; if it succeeds the source opens, and workers replay, paced, what was archived for the
account reason. A throttle goes on.`,
		Example: `  inspect resume recognize
  inspect resume main/recognize --dry-run      # costs nothing
  inspect resume main/recognize`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var sources, queues []string
			for _, arg := range args {
				if strings.Contains(arg, "/") {
					sources = append(sources, arg)
				} else {
					queues = append(queues, arg)
				}
			}
			switch {
			case len(sources) > 0 && len(queues) > 0:
				return usage("resume queues and sources one after the other")
			case len(queues) > 0 && dryRun:
				return usage("--dry-run is for SOURCE/PATH: resuming a queue costs nothing by itself")
			case len(queues) > 0:
				return a.with(cmd.Context(), needsRedis, func(ctx context.Context, s *session) error {
					return s.resumeQueues(ctx, queues, only)
				})
			case dryRun:
				return a.with(cmd.Context(), needsRedis|needsStore, func(ctx context.Context, s *session) error {
					return s.resumePlan(ctx, sources)
				})
			}
			return a.with(cmd.Context(), needsRedis, func(ctx context.Context, s *session) error {
				return s.resumeSources(ctx, sources)
			})
		},
	}
	cmd.Flags().BoolVar(&only, "only", false, "only the path's own queue, not those of its groups")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what resuming a source would start; costs nothing")
	return cmd
}

// resumeRow is a resumed source, or one that would be, for --json.
type resumeRow struct {
	Source   string     `json:"source"`
	Path     tasks.Path `json:"path"`
	Was      string     `json:"was"` // halt and its reason, breaker, or open
	DryRun   bool       `json:"dry_run"`
	Waiting  int64      `json:"waiting"`
	Archived *int64     `json:"archived"` // for an account reason, to be replayed; null = not counted
	Cost     *float64   `json:"cost"`     // of all these at most, for paths of one unit a call; null = unknown
}

// shutNow are the chosen sources with what shuts them.
func (s *session) shutNow(ctx context.Context, args []string) (*gates, []gate, admission.State, error) {
	g, err := s.seeded(ctx)
	if err != nil {
		return nil, nil, admission.State{}, err
	}
	chosen, err := parseGates(args, g.sources)
	if err != nil {
		return nil, nil, admission.State{}, err
	}
	state, err := g.State(ctx)
	return g, chosen, state, err
}

// was says what shuts a source; "open" if nothing that resume ends does.
func was(st admission.SourceState) string {
	switch {
	case st.Halt != "":
		return "halted: " + haltReason(st.Halt)
	case st.BreakerOpen:
		return "breaker open"
	case st.LastRefusedToken != "":
		return "open, but not for the refused token"
	}
	return "open"
}

func (s *session) resumePlan(ctx context.Context, args []string) error {
	g, chosen, state, err := s.shutNow(ctx, args)
	if err != nil {
		return err
	}
	rows := []resumeRow{}
	for _, st := range state.Sources {
		if !anyMatches(chosen, st) || was(st) == "open" {
			continue
		}
		row := resumeRow{Source: st.Source, Path: st.Path, Was: was(st), DryRun: true}
		if row.Waiting, err = s.waitingOn(ctx, g, st.Path); err != nil {
			return err
		}
		archived, err := s.archivedFor(ctx, st)
		if err != nil {
			return err
		}
		row.Archived = &archived
		if s.cfg.Price > 0 && st.Path != tasks.Enterprise {
			cost := float64(row.Waiting+archived) * s.cfg.Price / 1000
			row.Cost = &cost
		}
		rows = append(rows, row)
		if !s.json {
			s.line("%s/%s (%s): would probe with one waiting task, then let %s go on and replay %s archived for an account reason; %s%s",
				row.Source, row.Path, row.Was, count(row.Waiting, "waiting task", "waiting tasks"), thousands(archived), s.resumePrice(row), s.pace(st, row))
		}
	}
	if s.json {
		return s.writeJSON(rows)
	}
	if len(rows) == 0 {
		s.line("nothing to resume: %s", openWords(chosen))
	}
	return nil
}

func (s *session) resumePrice(r resumeRow) string {
	switch {
	case r.Path == tasks.Enterprise:
		return "units depend on the recordings' length"
	case r.Cost == nil:
		return s.price(r.Waiting + *r.Archived)
	}
	return count(r.Waiting+*r.Archived, "unit", "units") + ", " + dollars(*r.Cost)
}

// pace guesses how long the waiting tasks take at the rate in force.
func (s *session) pace(st admission.SourceState, r resumeRow) string {
	if st.RequestsPerMinute <= 0 || r.Waiting == 0 {
		return ""
	}
	return ", about " + span(minutes(r.Waiting, st.RequestsPerMinute))
}

func openWords(chosen []gate) string {
	names := make([]string, len(chosen))
	for i, c := range chosen {
		names[i] = c.String()
	}
	return strings.Join(names, ", ") + " neither halted nor broken"
}

func (s *session) resumeSources(ctx context.Context, args []string) error {
	who := s.by()
	g, chosen, before, err := s.shutNow(ctx, args)
	if err != nil {
		return err
	}
	changed := 0
	for _, c := range chosen {
		n, err := g.Resume(ctx, c.Source, c.Path, who)
		if err != nil {
			return err
		}
		changed += n
	}
	rows := []resumeRow{}
	for _, st := range before.Sources {
		if !anyMatches(chosen, st) || was(st) == "open" {
			continue
		}
		row := resumeRow{Source: st.Source, Path: st.Path, Was: was(st)}
		if row.Waiting, err = s.waitingOn(ctx, g, st.Path); err != nil {
			return err
		}
		rows = append(rows, row)
		if !s.json {
			s.line("%s/%s (was %s) is half-open: a worker probes it with the first of %s", row.Source, row.Path, row.Was, count(row.Waiting, "waiting task", "waiting tasks"))
		}
	}
	if s.json {
		return s.writeJSON(rows)
	}
	if changed == 0 {
		s.line("nothing to resume: %s", openWords(chosen))
		return nil
	}
	return s.whoProbes()
}

// whoProbes says when nobody is there to probe.
func (s *session) whoProbes() error {
	servers, err := s.asynq.Servers()
	if err != nil {
		return fmt.Errorf("look for workers: %w", err)
	}
	if len(servers) == 0 {
		s.line("no worker runs on this Redis now: the probe waits for one")
		return nil
	}
	s.line("follow it: inspect halts")
	return nil
}
