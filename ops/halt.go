package ops

import (
	"context"
	"strings"
	"time"

	"reprise/admission"
	"reprise/internal/text"
	"reprise/store"
	"reprise/tasks"
)

// Halted is an account that gets no calls until it is resumed or a probe succeeds.
type Halted struct {
	Source       string     `json:"source"`
	Path         tasks.Path `json:"path"`
	Reason       string     `json:"reason"` // an outcome, or "manual: " and an operator's text
	Since        *time.Time `json:"since"`
	By           string     `json:"by"`
	RefusedToken string     `json:"refused_fingerprint"` // of the token that AudD refused; "" = none
	ProbeAt      *time.Time `json:"probe_at"`            // null = only an operator resumes it
	Waiting      int64      `json:"waiting"`             // tasks of the path
}

// HaltsReport is the halts in force.
type HaltsReport struct {
	Halts []Halted `json:"halts"`
	// BlockedForAWhile counts the other accounts, which a throttle or breaker blocks.
	BlockedForAWhile int `json:"blocked_for_a_while"`
}

// Halts returns the halts in force.
func (s *Sources) Halts(ctx context.Context) (HaltsReport, error) {
	return s.halts(ctx, []target{{}})
}

func (s *Sources) halts(ctx context.Context, chosen []target) (HaltsReport, error) {
	r := HaltsReport{Halts: []Halted{}}
	v, err := s.survey(ctx)
	if err != nil {
		return r, err
	}
	for _, st := range v.state.Sources {
		gate, _ := st.Blocked(v.state.Now)
		switch {
		case !anyMatches(chosen, st) || gate == "":
			continue
		case st.Halt == "":
			r.BlockedForAWhile++
			continue
		}
		waiting, err := v.waitingOn(ctx, st.Path)
		if err != nil {
			return r, err
		}
		r.Halts = append(r.Halts, Halted{
			st.Source, st.Path, text.Printable(st.Halt), stamp(st.HaltSince), text.Printable(st.HaltBy), st.LastRefusedToken, stamp(st.ProbeAt), waiting,
		})
	}
	return r, nil
}

// HaltRequest selects the accounts to halt.
type HaltRequest struct {
	Targets []string // SOURCE/PATH, with * for all
	Why, By string   // both required
	// ProbeAfter is when one call may probe the account. Default 0: only Resume ends the halt.
	ProbeAfter time.Duration
}

// Halt blocks all calls to accounts until they are resumed, and returns their halts. Running calls finish.
func (s *Sources) Halt(ctx context.Context, r HaltRequest) (HaltsReport, error) {
	switch {
	case strings.TrimSpace(r.Why) == "":
		return HaltsReport{}, invalid("a reason (why) is required: it is shown with the halt")
	case r.ProbeAfter < 0:
		return HaltsReport{}, invalid("probe_after %s: must be 0 or more", r.ProbeAfter)
	}
	g, err := s.seeded(ctx)
	if err != nil {
		return HaltsReport{}, err
	}
	chosen, err := parseTargets(r.Targets, g.sources)
	if err != nil {
		return HaltsReport{}, err
	}
	for _, t := range chosen {
		halt := admission.Halt{
			Source: t.source, Path: t.path, Reason: manualHalt + strings.TrimSpace(r.Why), By: r.By, ProbeAfter: r.ProbeAfter,
		}
		if _, err := g.Halt(ctx, halt); err != nil {
			return HaltsReport{}, err
		}
	}
	return s.halts(ctx, chosen)
}

// Resumed is an account that was resumed, or would be.
type Resumed struct {
	Source  string     `json:"source"`
	Path    tasks.Path `json:"path"`
	Was     string     `json:"was"` // the halt and its reason, or the breaker
	DryRun  bool       `json:"dry_run"`
	Waiting int64      `json:"waiting"` // tasks of the path
	// Archived counts the tasks that were archived because of the account, and are replayed; null = not counted.
	Archived *int64 `json:"archived"`
	// Units and Cost are the most that all these tasks use; null = unknown. The units of a recording depend on its length.
	Units *int64   `json:"units"`
	Cost  *float64 `json:"cost"`
	// About is how many seconds the waiting tasks take at the rate in force; null = unknown.
	About *float64 `json:"about_seconds"`
}

// ResumeReport is the accounts that were resumed, or would be.
type ResumeReport struct {
	Sources []Resumed `json:"sources"`
	// Open lists the targets if there is nothing to resume; "" otherwise.
	Open    string `json:"open"`
	Workers int    `json:"workers"` // that can make the probe
}

// ResumePlan returns what Resume would start.
func (s *Sources) ResumePlan(ctx context.Context, targets []string) (ResumeReport, error) {
	_, _, report, err := s.resumable(ctx, targets)
	if err != nil {
		return report, err
	}
	for i := range report.Sources {
		r := &report.Sources[i]
		counts, err := s.Store.CountByOutcome(ctx, store.TaskFilter{Path: r.Path, Source: r.Source, Replayable: true})
		if err != nil {
			return report, err
		}
		var archived int64
		for _, outcome := range tasks.AccountOutcomes {
			archived += counts[outcome]
		}
		r.DryRun, r.Archived = true, &archived
		if r.Path != tasks.Enterprise {
			units := r.Waiting + archived
			r.Units, r.Cost = &units, s.costOf(units)
		}
	}
	return report, nil
}

// Resume sets accounts that are halted or have an open breaker half-open. A worker probes each account with its first
// waiting task, and a success opens the account. A throttle continues.
func (s *Sources) Resume(ctx context.Context, targets []string, by string) (ResumeReport, error) {
	g, chosen, report, err := s.resumable(ctx, targets)
	if err != nil || len(report.Sources) == 0 {
		return report, err
	}
	for _, t := range chosen {
		if _, err := g.Resume(ctx, t.source, t.path, by); err != nil {
			return report, err
		}
	}
	return report, nil
}

// resumable returns the chosen accounts that Resume would resume.
func (s *Sources) resumable(ctx context.Context, targets []string) (*gates, []target, ResumeReport, error) {
	report := ResumeReport{Sources: []Resumed{}}
	v, err := s.survey(ctx)
	if err == nil {
		err = v.gates.seeded()
	}
	if err != nil {
		return nil, nil, report, err
	}
	chosen, err := parseTargets(targets, v.gates.sources)
	if err != nil {
		return nil, nil, report, err
	}
	for _, st := range v.state.Sources {
		r := Resumed{Source: st.Source, Path: st.Path, Was: blockedBefore(st)}
		if r.Was == "" || !anyMatches(chosen, st) {
			continue
		}
		if r.Waiting, err = v.waitingOn(ctx, st.Path); err != nil {
			return nil, nil, report, err
		}
		if st.RequestsPerMinute > 0 && r.Waiting > 0 {
			seconds := minutes(r.Waiting, st.RequestsPerMinute).Seconds()
			r.About = &seconds
		}
		report.Sources = append(report.Sources, r)
	}
	if len(report.Sources) == 0 {
		report.Open = strings.Join(mapped(chosen, target.String), ", ")
	}
	workers, err := s.queue.Workers(ctx)
	report.Workers = len(workers)
	return v.gates, chosen, report, err
}

// blockedBefore returns what Resume ends at a source; "" if there is nothing to end.
func blockedBefore(st admission.SourceState) string {
	switch {
	case st.Halt != "":
		return "halted: " + text.Printable(st.Halt)
	case st.BreakerOpen:
		return "breaker open"
	case st.LastRefusedToken != "":
		return "open, but not for the refused token"
	}
	return ""
}
