package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/admission"
	"reprise/store"
	"reprise/tasks"
)

func newHalts(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "halts",
		Short: "What is halted, why, and what waits for it (costs nothing)",
		Example: `  inspect halts
  inspect halts --json
  inspect resume main/recognize --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.with(cmd.Context(), needsRedis, listHalts) },
	}
}

func newHalt(a *app) *cobra.Command {
	var why string
	var probe time.Duration
	cmd := &cobra.Command{
		Use:   "halt SOURCE/PATH… --why TEXT",
		Short: "Let no call go to a source until resumed (costs nothing)",
		Long: `* stands for every source or path. Calls under way finish. Tasks wait; those that may use another source go there.
To stop a queue instead of an account: inspect pause.`,
		Example: `  inspect halt main/recognize --why "token leaked"
  inspect halt '*/upload' --why "catalog is being cleaned"
  inspect halt spare/* --why maintenance --probe-after 30m`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(why) == "" {
				return usage("--why TEXT is required: whoever finds it halted must know")
			}
			if probe < 0 {
				return usage("--probe-after %s: want 0 or more", probe)
			}
			return a.with(cmd.Context(), needsRedis, func(ctx context.Context, s *session) error {
				return s.halt(ctx, args, why, probe)
			})
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "reason, shown to everybody who looks")
	cmd.Flags().DurationVar(&probe, "probe-after", 0, "let one call probe it after so long; 0 = only inspect resume opens it")
	return cmd
}

// gate is a source and path that a person named; empty stands for all.
type gate struct {
	Source string     `json:"source"`
	Path   tasks.Path `json:"path"`
}

func (g gate) String() string {
	return firstOf(g.Source, "*") + "/" + firstOf(string(g.Path), "*")
}

func (g gate) matches(s admission.SourceState) bool {
	return (g.Source == "" || g.Source == s.Source) && (g.Path == "" || g.Path == s.Path)
}

// parseGate reads SOURCE/PATH, with * for all.
func parseGate(arg string, sources []string) (gate, error) {
	source, path, ok := strings.Cut(arg, "/")
	if !ok || source == "" || path == "" {
		return gate{}, usage("%s: want SOURCE/PATH such as main/recognize, with * for all", printable(arg))
	}
	g := gate{Source: source, Path: tasks.Path(path)}
	if path == "*" {
		g.Path, path = "", string(tasks.Recognize)
	}
	if source == "*" {
		g.Source, source = "", firstOf(strings.Join(sources[:min(1, len(sources))], ""), "main")
	}
	if _, err := checkGate(source, path, sources); err != nil {
		return gate{}, &failure{exitUsage, err}
	}
	return g, nil
}

func parseGates(args, sources []string) ([]gate, error) {
	out := make([]gate, 0, len(args))
	for _, arg := range args {
		g, err := parseGate(arg, sources)
		if err != nil {
			return nil, err
		}
		out = append(out, g)
	}
	return out, nil
}

// manualHalt begins the reason of a person's halt, so that no word of theirs
// is taken for an outcome's name.
const manualHalt = "manual:"

func (s *session) halt(ctx context.Context, args []string, why string, probe time.Duration) error {
	who := s.by()
	g, err := s.seeded(ctx)
	if err != nil {
		return err
	}
	chosen, err := parseGates(args, g.sources)
	if err != nil {
		return err
	}
	for _, c := range chosen {
		if _, err := g.Halt(ctx, admission.Halt{Source: c.Source, Path: c.Path, Reason: manualHalt + " " + why, By: who, ProbeAfter: probe}); err != nil {
			return err
		}
	}
	return s.printHalts(ctx, g, func(st admission.SourceState) bool { return anyMatches(chosen, st) })
}

func anyMatches(chosen []gate, st admission.SourceState) bool {
	for _, c := range chosen {
		if c.matches(st) {
			return true
		}
	}
	return false
}

// haltRow is a halt for --json.
type haltRow struct {
	Source      string     `json:"source"`
	Path        tasks.Path `json:"path"`
	Reason      string     `json:"reason"`
	Since       *time.Time `json:"since"`
	By          string     `json:"by"`
	Fingerprint string     `json:"refused_fingerprint"` // of a token AudD refused; "" = none
	ProbeAt     *time.Time `json:"probe_at"`            // null = only a person resumes
	Waiting     int64      `json:"waiting"`             // tasks of the path, for any source
}

func listHalts(ctx context.Context, s *session) error {
	g, err := s.gates(ctx)
	if err != nil {
		return err
	}
	return s.printHalts(ctx, g, func(admission.SourceState) bool { return true })
}

func (s *session) printHalts(ctx context.Context, g *gates, keep func(admission.SourceState) bool) error {
	state, err := g.State(ctx)
	if err != nil {
		return err
	}
	rows := []haltRow{}
	broken := 0
	t := table{head: []string{"SOURCE/PATH", "REASON", "SINCE", "BY", "TOKEN", "PROBE", "WAITING"}}
	for _, st := range state.Sources {
		if !keep(st) {
			continue
		}
		if st.Halt == "" {
			if gate, _ := st.Blocked(state.Now); gate != "" {
				broken++
			}
			continue
		}
		waiting, err := s.waitingOn(ctx, g, st.Path)
		if err != nil {
			return err
		}
		rows = append(rows, haltRow{st.Source, st.Path, haltReason(st.Halt), stamp(st.HaltSince), words(st.HaltBy), st.LastRefusedToken, stamp(st.ProbeAt), waiting})
		t.add(text(st.Source+"/"+string(st.Path)), tinted(haltReason(st.Halt), red), text(s.since(st.HaltSince)), text(words(st.HaltBy)),
			text(firstOf(short(st.LastRefusedToken, 9), "–")), text(s.probe(st)), number(waiting))
	}
	if s.json {
		return s.writeJSON(rows)
	}
	if len(rows) == 0 {
		s.line("nothing is halted")
	} else {
		s.table(t)
	}
	if broken > 0 {
		s.line("%s shut for a while by a throttle or breaker: inspect sources", count(broken, "more is", "more are"))
	}
	return nil
}

// haltReason is an outcome's name or, for a person's halt, their words.
func haltReason(reason string) string {
	if rest, ok := strings.CutPrefix(reason, manualHalt); ok {
		return "manual: " + strings.TrimSpace(words(rest))
	}
	return printable(reason)
}

func (s *session) probe(st admission.SourceState) string {
	if st.ProbeAt.IsZero() {
		return "on resume"
	}
	return s.until(st.ProbeAt)
}

// waitingOn counts the unfinished tasks in all queues of a path.
func (s *session) waitingOn(ctx context.Context, g *gates, path tasks.Path) (int64, error) {
	queues, err := s.queues(g)
	if err != nil {
		return 0, err
	}
	var n int64
	for _, queue := range queues {
		if p, _, err := tasks.SplitQueue(queue); err != nil || p != path {
			continue
		}
		q, err := s.stat(ctx, queue)
		if err != nil {
			return 0, err
		}
		n += q.waiting()
	}
	return n, nil
}

// archivedFor counts what workers replay when the source opens.
func (s *session) archivedFor(ctx context.Context, st admission.SourceState) (int64, error) {
	var n int64
	for _, outcome := range tasks.AccountOutcomes {
		found, err := s.store.Tasks(ctx, store.TaskFilter{Path: st.Path, Source: st.Source, Outcome: outcome, Replayable: true, Limit: 100_000})
		if err != nil {
			return 0, err
		}
		n += int64(len(found))
	}
	return n, nil
}
