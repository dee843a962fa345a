package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"reprise/store"
	"reprise/tasks"
)

func newCosts(a *app) *cobra.Command {
	var since, until, by string
	cmd := &cobra.Command{
		Use:   "costs",
		Short: "What calls used and cost, and what is not known about it (costs nothing)",
		Long: `Sums the calls of the store. A price that is not known is never taken for 0: such units are listed apart, and so is what may
have been billed without AudD having said so. Days are those of time_zone.`,
		Example: `  inspect costs
  inspect costs --since 7d --by source
  inspect costs --since 2026-11-01 --until 2026-12-01 --by path --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.costs(cmd.Context(), since, until, by)
		},
	}
	cmd.Flags().StringVar(&since, "since", "30d", "calls that ended since: 24h, 7d, or 2026-11-30")
	cmd.Flags().StringVar(&until, "until", "", "calls that ended before")
	cmd.Flags().StringVar(&by, "by", "day", "a row per day, source, path, group or outcome")
	return cmd
}

// costBy is what a row of costs is about.
type costBy string

const (
	byDay     costBy = "day"
	bySource  costBy = "source"
	byPath    costBy = "path"
	byGroup   costBy = "group"
	byOutcome costBy = "outcome"
)

func (a *app) costs(ctx context.Context, since, until, by string) error {
	dimension, err := word("by", by, []costBy{byDay, bySource, byPath, byGroup, byOutcome})
	if err != nil {
		return err
	}
	needs := needsStore
	if dimension == byGroup {
		needs |= needsRedis // who knows the groups
	}
	return a.with(ctx, needs, func(ctx context.Context, s *session) error {
		from, err := moment(since, s.zone)
		if err != nil {
			return usage("--since %w", err)
		}
		to, err := moment(until, s.zone)
		if err != nil {
			return usage("--until %w", err)
		}
		if to.IsZero() {
			to = time.Now().Add(time.Minute)
		}
		if !from.Before(to) {
			return usage("--since is not before --until")
		}
		rows, err := s.sumCosts(ctx, dimension, from, to)
		if err != nil {
			return err
		}
		return s.printCosts(dimension, from, to, rows)
	})
}

// costRow sums calls.
type costRow struct {
	Of    string `json:"of"` // a day, source, path, group or outcome
	Calls int64  `json:"calls"`
	Units int64  `json:"units"`
	// Cost is the sum of the known costs; null = none is known.
	Cost *float64 `json:"cost"`
	// CostAtPrice is Cost with the unpriced units at --price-per-1000; null =
	// that price is not known either.
	CostAtPrice *float64 `json:"cost_at_price"`
	// UnpricedUnits are not in Cost: their price was not known.
	UnpricedUnits int64 `json:"unpriced_units"`
	UnpricedCalls int64 `json:"unpriced_calls"`
	// PossiblyBilled calls may have been billed without an answer saying so.
	PossiblyBilled int64 `json:"possibly_billed_calls"`
	// UnknownUnits are calls of which not even an estimate of units is known.
	UnknownUnits int64 `json:"unknown_unit_calls"`
	// EstimatedUnits are those of Units that AudD did not state itself.
	EstimatedUnits int64 `json:"estimated_units"`
}

func (r *costRow) add(c store.Call) {
	r.Calls++
	r.Units += c.Units
	switch {
	case c.Cost != nil:
		total := *c.Cost
		if r.Cost != nil {
			total += *r.Cost
		}
		r.Cost = &total
	case c.Units > 0:
		r.UnpricedCalls++
		r.UnpricedUnits += c.Units
	}
	if c.PossiblyBilled {
		r.PossiblyBilled++
	}
	switch c.UnitBasis {
	case "unavailable":
		r.UnknownUnits++
	case "estimated":
		r.EstimatedUnits += c.Units
	}
}

func (r *costRow) merge(o costRow) {
	r.Calls, r.Units = r.Calls+o.Calls, r.Units+o.Units
	if o.Cost != nil {
		total := *o.Cost
		if r.Cost != nil {
			total += *r.Cost
		}
		r.Cost = &total
	}
	r.UnpricedUnits, r.UnpricedCalls = r.UnpricedUnits+o.UnpricedUnits, r.UnpricedCalls+o.UnpricedCalls
	r.PossiblyBilled, r.UnknownUnits = r.PossiblyBilled+o.PossiblyBilled, r.UnknownUnits+o.UnknownUnits
	r.EstimatedUnits += o.EstimatedUnits
}

func (s *session) sumCosts(ctx context.Context, by costBy, from, to time.Time) ([]costRow, error) {
	sums := map[string]*costRow{}
	put := func(of string, c store.Call) {
		if sums[of] == nil {
			sums[of] = &costRow{Of: of}
		}
		sums[of].add(c)
	}
	if by == byGroup {
		return s.sumGroups(ctx, from, to)
	}
	err := s.eachCall(ctx, store.CallFilter{Since: from, Until: to}, func(c store.Call) {
		switch by {
		case bySource:
			put(firstOf(c.Source, "(none)"), c)
		case byPath:
			put(string(c.Path), c)
		case byOutcome:
			put(string(c.Outcome), c)
		default:
			put(c.At.In(s.zone).Format(time.DateOnly), c)
		}
	})
	return sorted(sums), err
}

func sorted(sums map[string]*costRow) []costRow {
	out := []costRow{}
	for _, of := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, *sums[of])
	}
	return out
}

// sumGroups sums the calls of each queue there is under its group.
func (s *session) sumGroups(ctx context.Context, from, to time.Time) ([]costRow, error) {
	g, err := s.gates(ctx)
	if err != nil {
		return nil, err
	}
	queues, err := s.queues(g)
	if err != nil {
		return nil, err
	}
	sums := map[string]*costRow{}
	for _, queue := range queues {
		_, group, err := tasks.SplitQueue(queue)
		if err != nil {
			continue // not one of ours
		}
		of := firstOf(group, "(no group)")
		if sums[of] == nil {
			sums[of] = &costRow{Of: of}
		}
		if err := s.eachCall(ctx, store.CallFilter{Queue: queue, Since: from, Until: to}, sums[of].add); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(sorted(sums), func(r costRow) bool { return r.Calls == 0 }), nil
}

// callPage is how many calls are in memory at once.
const callPage = 20_000

// eachCall reads calls in windows of time: a window that holds too many is
// halved, so that millions of calls fit into memory.
func (s *session) eachCall(ctx context.Context, f store.CallFilter, do func(store.Call)) error {
	f.Limit = callPage
	end, window := f.Until, f.Until.Sub(f.Since)
	for f.Since.Before(end) {
		f.Until = f.Since.Add(window)
		if f.Until.After(end) {
			f.Until = end
		}
		found, err := s.store.Calls(ctx, f)
		if err != nil {
			return err
		}
		if len(found) == callPage && window > 2*time.Millisecond {
			window /= 2
			continue
		}
		for _, c := range found {
			do(c)
		}
		f.Since = f.Until
		if len(found) < callPage/4 {
			window *= 2
		}
	}
	return nil
}

func (s *session) printCosts(by costBy, from, to time.Time, rows []costRow) error {
	total := costRow{Of: "total"}
	for i := range rows {
		total.merge(rows[i])
		rows[i].CostAtPrice = s.atPrice(rows[i])
	}
	total.CostAtPrice = s.atPrice(total)
	if s.json {
		return s.writeJSON(struct {
			By    costBy     `json:"by"`
			Since *time.Time `json:"since"`
			Until *time.Time `json:"until"`
			Rows  []costRow  `json:"rows"`
			Total costRow    `json:"total"`
			Gaps  []string   `json:"gaps"`
		}{by, stamp(from), stamp(to), rows, total, s.gaps(total)})
	}
	if total.Calls == 0 {
		s.line("no calls since %s", from.In(s.zone).Format("2006-01-02 15:04"))
		return nil
	}
	t := table{head: []string{string(by), "CALLS", "UNITS", "COST", "UNPRICED UNITS", "POSSIBLY BILLED"}}
	for _, r := range append(rows, total) {
		t.add(text(printable(r.Of)), number(r.Calls), number(r.Units), right(s.moneyAt(r)), numberOr(r.UnpricedUnits, "–"), numberOr(r.PossiblyBilled, "–"))
	}
	s.table(t)
	for _, gap := range s.gaps(total) {
		s.line("not known: %s", gap)
	}
	return nil
}

// gaps are what the sums do not say.
func (s *session) gaps(r costRow) []string {
	out := []string{}
	if r.UnpricedUnits > 0 {
		gap := fmt.Sprintf("the price of %s in %s", count(r.UnpricedUnits, "unit", "units"), count(r.UnpricedCalls, "call", "calls"))
		if s.cfg.Price > 0 {
			gap += fmt.Sprintf(" when they were made; the table has them at %s/1000", dollars(s.cfg.Price))
		}
		out = append(out, gap)
	}
	if r.PossiblyBilled > 0 {
		out = append(out, fmt.Sprintf("whether AudD billed %s: sent, and no result came back", count(r.PossiblyBilled, "call", "calls")))
	}
	if r.UnknownUnits > 0 {
		out = append(out, "the units of "+count(r.UnknownUnits, "call", "calls"))
	}
	if r.EstimatedUnits > 0 {
		out = append(out, fmt.Sprintf("AudD's own count for %s, which are estimated", count(r.EstimatedUnits, "unit", "units")))
	}
	return out
}

// atPrice is the known cost with the units that have none at the price of now;
// nil = that price is not known.
func (s *session) atPrice(r costRow) *float64 {
	if s.cfg.Price == 0 && r.UnpricedUnits > 0 {
		return nil
	}
	sum := float64(r.UnpricedUnits) * s.cfg.Price / 1000
	if r.Cost != nil {
		sum += *r.Cost
	}
	return &sum
}

// moneyAt is what calls cost, those without a price of their own at the one of
// now, if it is known.
func (s *session) moneyAt(r costRow) string {
	if sum := s.atPrice(r); sum != nil {
		return dollars(*sum)
	}
	return money(r)
}

// spent says in a sentence what is known of the cost.
func (s *session) spent(r costRow) string {
	switch {
	case s.atPrice(r) != nil:
		return s.moneyAt(r)
	case r.Cost == nil:
		return "price unknown (--price-per-1000)"
	}
	return fmt.Sprintf("%s and %s of unknown price (--price-per-1000)", dollars(*r.Cost), count(r.UnpricedUnits, "unit", "units"))
}

func money(r costRow) string {
	switch {
	case r.Cost != nil:
		return dollars(*r.Cost)
	case r.UnpricedUnits > 0:
		return "unknown"
	}
	return dollars(0)
}

// dollars has cents, and four decimals below a dollar, where cents would lie.
func dollars(v float64) string {
	if v >= 1 || v == 0 {
		return "$" + grouped(v)
	}
	return fmt.Sprintf("$%.4f", v)
}

func grouped(v float64) string {
	cents := int64(v*100 + 0.5)
	return fmt.Sprintf("%s.%02d", thousands(cents/100), cents%100)
}

// price says what units cost, as far as the price is known.
func (s *session) price(units int64) string {
	if s.cfg.Price == 0 {
		return "price unknown (--price-per-1000)"
	}
	return fmt.Sprintf("%s at %s/1000", dollars(float64(units)*s.cfg.Price/1000), dollars(s.cfg.Price))
}
