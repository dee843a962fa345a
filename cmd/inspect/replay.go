package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/intake"
	"reprise/internal/redisconn"
	"reprise/store"
	"reprise/tasks"
)

// replayFlags are what replay was told.
type replayFlags struct {
	filterFlags
	all, dryRun bool
	rate        string
}

func newReplay(a *app) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay [KEY…]",
		Short: "Run archived tasks again, at a pace (costs units: what each call costs; --dry-run costs nothing)",
		Long: `Takes the keys given (they may be cut short), or what the flags choose among the archived tasks that are no tombstones; --all for all of them.
It may be stopped and started again at any time: nothing is queued twice.`,
		Example: `  inspect replay --outcome quota --dry-run
  inspect replay --outcome quota --rate 20/s
  inspect replay recognize_3q…`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !f.chosen() && !f.all {
				return usage("replay what? give keys, a flag such as --outcome, or --all")
			}
			if len(args) > 0 && (f.chosen() || f.all) {
				return usage("give keys or flags that choose, not both")
			}
			needs := needsStore
			if !f.dryRun {
				needs |= needsRedis
			}
			return a.with(cmd.Context(), needs, func(ctx context.Context, s *session) error { return s.replay(ctx, f, args) })
		},
	}
	f.add(cmd, false, 100_000)
	cmd.Flags().BoolVar(&f.all, "all", false, "everything that can be replayed")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would be replayed and what it costs at most; costs nothing")
	cmd.Flags().StringVar(&f.rate, "rate", "10/s", "how many are queued per second (/s) or minute (/min)")
	return cmd
}

// replayReport is what a replay came to, for --json.
type replayReport struct {
	DryRun   bool             `json:"dry_run"`
	Found    int              `json:"found"`
	Replayed int              `json:"replayed"`
	Waiting  int              `json:"waiting"` // were in the queue already
	Left     int              `json:"left"`    // not tried: it was stopped
	Units    int64            `json:"units"`   // of all found, at most
	Cost     *float64         `json:"cost"`    // null = price unknown
	Outcomes map[string]int   `json:"outcomes"`
	Failed   []replayedFailed `json:"failed"`
}

type replayedFailed struct {
	Key    string `json:"key"`
	Reason string `json:"reason"`
}

func (s *session) replay(ctx context.Context, f replayFlags, keys []string) error {
	gap, err := parseRate(f.rate)
	if err != nil {
		return err
	}
	r := replayReport{DryRun: f.dryRun, Outcomes: map[string]int{}, Failed: []replayedFailed{}}
	found, err := s.replayable(ctx, f, keys, &r)
	if err != nil {
		return err
	}
	r.Found = len(found) + len(r.Failed)
	for _, t := range found {
		r.Outcomes[firstOf(string(t.Outcome), "cut short")]++
		units, err := s.unitsOf(ctx, t)
		if err != nil {
			return err
		}
		r.Units += units
	}
	if s.cfg.Price > 0 {
		cost := float64(r.Units) * s.cfg.Price / 1000
		r.Cost = &cost
	}
	if r.Found == 0 && !s.json {
		s.line("nothing to replay")
		return nil
	}
	if len(found) > 0 && !s.json {
		s.line("%s %s at most, %s; about %s at %s", replayWhat(r, len(found)), count(r.Units, "unit", "units"), s.price(r.Units),
			span(gap*time.Duration(len(found))), f.rate)
	}
	if !f.dryRun && len(found) > 0 {
		if err := s.replayAll(ctx, found, gap, &r); err != nil {
			return err
		}
	}
	return s.replayed(r)
}

// replayWhat says what of n tasks is replayed.
func replayWhat(r replayReport, n int) string {
	verb := "replaying"
	if r.DryRun {
		verb = "would replay"
	}
	var parts []string
	for _, o := range tasks.Outcomes {
		if n := r.Outcomes[string(o)]; n > 0 {
			parts = append(parts, thousands(int64(n))+" "+string(o))
		}
	}
	if n := r.Outcomes["cut short"]; n > 0 {
		parts = append(parts, thousands(int64(n))+" whose replay was cut short")
	}
	if len(parts) > 0 {
		return fmt.Sprintf("%s %s (%s),", verb, count(n, "task", "tasks"), strings.Join(parts, ", "))
	}
	return fmt.Sprintf("%s %s,", verb, count(n, "task", "tasks"))
}

// replayable are the tasks to run again. A replay that was killed between
// raising a task's generation and queuing it left it unfinished and unqueued;
// the same replay later takes it up first.
func (s *session) replayable(ctx context.Context, f replayFlags, keys []string, r *replayReport) ([]store.TaskRow, error) {
	if len(keys) > 0 {
		return s.named(ctx, keys, r)
	}
	filter, err := f.filter(s.zone)
	if err != nil {
		return nil, err
	}
	out, err := s.cutShort(ctx, filter)
	if err != nil {
		return nil, err
	}
	filter.Replayable = true
	filter.Limit = max(1, f.limit-len(out))
	more, err := s.store.Tasks(ctx, filter)
	return append(out, more...), err
}

// named are the tasks of keys, each of which must be known. What replay would
// refuse is failed here already, so that a dry run says so too.
func (s *session) named(ctx context.Context, names []string, r *replayReport) ([]store.TaskRow, error) {
	keys, err := s.fullKeys(ctx, names)
	if err != nil {
		return nil, err
	}
	var out []store.TaskRow
	for _, key := range keys {
		st, err := s.store.TaskStatus(ctx, key)
		if err != nil {
			return nil, err
		}
		if !st.Known {
			return nil, refused("nothing is known of %s", shownName(key))
		}
		if why := unreplayable(st); why != "" {
			r.Failed = append(r.Failed, replayedFailed{key, why})
			continue
		}
		out = append(out, store.TaskRow{Key: key, Path: st.Path, Queue: st.Queue, Outcome: st.Outcome, Verdict: st.Verdict})
	}
	return out, nil
}

// unreplayable says why intake would refuse to replay a task, and what to do
// instead; "" if it would not.
func unreplayable(st store.TaskStatus) string {
	const nothing = "nothing to replay: it "
	switch {
	case !st.Finished && st.Generation == 0:
		return nothing + "waits for its first run (inspect why says for what)"
	case !st.Finished || st.Verdict == tasks.Archive && !st.Final:
		return ""
	case st.Final:
		return nothing + "is archived for good; enqueue its input with --force to pay for it again"
	case st.Verdict == tasks.Hold:
		return nothing + "is held until a person decides: inspect uploads resolve"
	}
	return nothing + "is " + string(st.Verdict) + "; enqueue its input with --force to pay for it again"
}

// cutShort finds re-opened tasks that have not run since and are not queued.
func (s *session) cutShort(ctx context.Context, f store.TaskFilter) ([]store.TaskRow, error) {
	if s.rdb == nil {
		return nil, nil
	}
	no := false
	page := store.TaskFilter{Path: f.Path, Queue: f.Queue, Finished: &no, Limit: 10_000}
	var out []store.TaskRow
	for {
		found, err := s.store.Tasks(ctx, page)
		if err != nil {
			return nil, err
		}
		for _, t := range found {
			page.AfterAt, page.AfterKey = t.UpdatedAt, t.Key
			if t.Generation == 0 || t.Verdict != "" || !t.AttemptedAt.IsZero() {
				continue
			}
			state, err := s.taskState(ctx, t.Queue, t.Key)
			if err != nil {
				return nil, err
			}
			if state == "" || state == "archived" || state == "completed" {
				out = append(out, t)
			}
		}
		if len(found) < page.Limit {
			return out, nil
		}
	}
}

func (s *session) unitsOf(ctx context.Context, t store.TaskRow) (int64, error) {
	raw, err := s.store.Payload(ctx, t.Key)
	if err != nil {
		return 0, err
	}
	p, err := tasks.Decode(t.Path.Type(), raw)
	if err != nil {
		return 1, nil //nolint:nilerr // replaying it will say what is wrong with it
	}
	units, _ := p.Units(false)
	return max(units, 1), nil
}

// replayAll queues one task after the other. When ctx ends it finishes the one
// at hand.
func (s *session) replayAll(ctx context.Context, found []store.TaskRow, gap time.Duration, r *replayReport) error {
	rdb, err := redisconn.Queue(s.redisURL, 4)
	if err != nil {
		return err
	}
	defer rdb.Close()
	in, err := intake.New(intake.Options{Redis: rdb, Store: s.store})
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	tick := time.NewTicker(gap)
	defer tick.Stop()
	for i, t := range found {
		if i > 0 {
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
		if ctx.Err() != nil {
			r.Left = len(found) - i
			return nil
		}
		if err := s.replayOne(ctx, in, t, r); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) replayOne(ctx context.Context, in *intake.Intake, t store.TaskRow, r *replayReport) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	verdict, err := in.Replay(ctx, t.Key)
	switch {
	case store.IsUnavailable(err):
		return err
	case err != nil:
		r.Failed = append(r.Failed, replayedFailed{t.Key, strings.TrimPrefix(err.Error(), "replay: ")})
	case verdict == intake.AlreadyQueued:
		r.Waiting++
	default:
		r.Replayed++
	}
	return nil
}

// replayed prints the end of a replay.
func (s *session) replayed(r replayReport) error {
	if s.json {
		if err := s.writeJSON(r); err != nil {
			return err
		}
	} else {
		for _, f := range r.Failed {
			fmt.Fprintf(s.std.err, "inspect: %s: %s\n", f.Key, printable(f.Reason))
		}
		switch {
		case !r.DryRun:
			s.line("replayed %d of %d%s", r.Replayed, r.Found, waitingToo(r.Waiting))
		case len(r.Failed) > 0:
			s.line("would replay %d of %d", r.Found-len(r.Failed), r.Found)
		}
	}
	switch {
	case r.Left > 0:
		return &failure{exitSome, fmt.Errorf("stopped: %s left; run the same command again to go on, nothing is queued twice", count(r.Left, "task", "tasks"))}
	case len(r.Failed) > 0:
		return &failure{code: exitSome}
	}
	return nil
}

func waitingToo(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d queued already", n)
}

// parseRate reads 20/s or 300/min into the time between two.
func parseRate(text string) (time.Duration, error) {
	number, unit, _ := strings.Cut(text, "/")
	per, ok := map[string]time.Duration{"": time.Second, "s": time.Second, "sec": time.Second, "m": time.Minute, "min": time.Minute}[strings.TrimSpace(unit)]
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(n > 0) || n > 1e6 {
		return 0, usage("--rate %q: want a number per second or minute, such as 20/s or 300/min", text)
	}
	return max(time.Duration(float64(per)/n), time.Microsecond), nil
}
