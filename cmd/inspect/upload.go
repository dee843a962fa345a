package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/idempotency"
)

func newUploads(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "uploads",
		Short: "The upload ledger: what was sent, what is uncertain, and deciding it (costs nothing by itself)",
		Long: `An upload that may have arrived is never sent again by itself: a person looks, and says whether it arrived.
Every decision is kept with who, when and why.`,
		Example: `  inspect uploads list
  inspect uploads show upload_5f…
  inspect uploads resolve upload_5f… --as settled --why "found by its fingerprint"`,
		Args: cobra.NoArgs,
		RunE: helpOnly,
	}
	cmd.AddCommand(newUploadsList(a), newUploadsShow(a), newUploadsResolve(a), newUploadsAdopt(a))
	return cmd
}

// ledger is the upload ledger in the session's store.
func (s *session) ledger(ctx context.Context) (*idempotency.Ledger, error) {
	return idempotency.New(ctx, s.store.DB(), idempotency.DefaultConfig())
}

// uploadFlags choose uploads.
type uploadFlags struct {
	states       []string
	source       string
	audioIDs     []int64
	since, until string
	limit        int
}

func (f *uploadFlags) add(cmd *cobra.Command, states []idempotency.State) {
	fs := cmd.Flags()
	var names []string
	for _, state := range states {
		names = append(names, string(state))
	}
	fs.StringSliceVar(&f.states, "state", names, strings.Join(stateWords(), ", "))
	fs.StringVar(&f.source, "source", "", "only this account's catalog")
	fs.Int64SliceVar(&f.audioIDs, "audio-id", nil, "only these slots")
	fs.StringVar(&f.since, "since", "", "only what was sent since: 90m, 24h, 7d, or 2026-11-30")
	fs.StringVar(&f.until, "until", "", "only what was sent before")
	fs.IntVar(&f.limit, "limit", 1000, "at most so many")
}

// allStates is --state for every one.
const allStates = "all"

// stateWords are the words that --state knows.
func stateWords() []string {
	var out []string
	for _, state := range idempotency.States {
		out = append(out, string(state))
	}
	return append(out, allStates)
}

// chosen reports whether a flag narrows the choice.
func (f *uploadFlags) chosen() bool {
	return f.source+f.since+f.until != "" || len(f.audioIDs) > 0
}

func (f *uploadFlags) filter(zone *time.Location) (idempotency.Filter, error) {
	out := idempotency.Filter{Source: f.source, AudioIDs: f.audioIDs, Limit: f.limit}
	if f.limit < 1 {
		return out, usage("--limit %d: want 1 or more", f.limit)
	}
	for _, name := range f.states {
		state, err := word("state", name, stateWords())
		if err != nil {
			return out, err
		}
		if state == allStates {
			out.States = idempotency.States
			break
		}
		out.States = append(out.States, idempotency.State(state))
	}
	var err error
	if out.SentFrom, err = moment(f.since, zone); err != nil {
		return out, usage("--since %w", err)
	}
	if out.SentBefore, err = moment(f.until, zone); err != nil {
		return out, usage("--until %w", err)
	}
	return out, nil
}

func newUploadsList(a *app) *cobra.Command {
	var f uploadFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Uploads by state; by default those that need a person or are under way (costs nothing)",
		Example: `  inspect uploads list
  inspect uploads list --state settled --source main
  inspect uploads list --state all --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), needsStore, func(ctx context.Context, s *session) error {
				filter, err := f.filter(s.zone)
				if err != nil {
					return err
				}
				return s.listUploads(ctx, filter)
			})
		},
	}
	f.add(cmd, needAPerson)
	return cmd
}

// needAPerson are the states that are listed by default.
var needAPerson = []idempotency.State{idempotency.Uncertain, idempotency.Sent}

// uploadRow is an upload in its current generation, for --json.
type uploadRow struct {
	Key        string            `json:"key"`
	Source     string            `json:"source"`
	AudioID    int64             `json:"audio_id"`
	SHA256     string            `json:"sha256"`
	Generation int64             `json:"generation"`
	State      idempotency.State `json:"state"`
	Since      *time.Time        `json:"since"`
	Replaced   bool              `json:"replaced"` // other content owns the slot now
	Send       *sendRow          `json:"send"`     // null = not sent in this generation
}

// sendRow is one send.
type sendRow struct {
	Generation int64             `json:"generation"`
	State      idempotency.State `json:"state"`
	AttemptID  string            `json:"attempt_id"`
	SentAt     *time.Time        `json:"sent_at"`
	EndedAt    *time.Time        `json:"ended_at"`
	Outcome    string            `json:"outcome"`
	Reason     string            `json:"reason"`
	RequestID  string            `json:"request_id"`
	Verify     string            `json:"verify"`
	Tries      int               `json:"verify_tries"`
}

func sendOf(s idempotency.Send) *sendRow {
	if s.State == "" {
		return nil
	}
	return &sendRow{
		Generation: s.Generation, State: s.State, AttemptID: s.AttemptID, SentAt: stamp(s.SentAt), EndedAt: stamp(s.EndedAt),
		Outcome: string(s.Outcome), Reason: s.Reason, RequestID: s.RequestID, Verify: string(s.Verify), Tries: s.Tries,
	}
}

func (s *session) listUploads(ctx context.Context, f idempotency.Filter) error {
	ledger, err := s.ledger(ctx)
	if err != nil {
		return err
	}
	found, err := ledger.List(ctx, f)
	if err != nil {
		return err
	}
	if s.json {
		rows := []uploadRow{}
		for _, e := range found {
			rows = append(rows, uploadRow{e.Key, e.Source, e.AudioID, e.SHA256, e.Generation, e.State, stamp(e.Since), e.Owner != "" && e.Owner != e.Key, sendOf(e.Send)})
		}
		return s.writeJSON(rows)
	}
	if len(found) == 0 {
		none, err := noUploads(ctx, ledger, f)
		if err != nil {
			return err
		}
		s.line("%s", none)
		return nil
	}
	t := table{head: []string{"KEY", "SOURCE", "AUDIO ID", "STATE", "SENT", "REASON"}}
	uncertain := false
	for _, e := range found {
		uncertain = uncertain || e.State == idempotency.Uncertain
		sent := "–"
		if !e.Send.SentAt.IsZero() {
			sent = s.since(e.Send.SentAt)
		}
		t.add(text(shortKey(e.Key)), text(e.Source), right(strconv.FormatInt(e.AudioID, 10)), uploadCell(e.State), text(sent), text(short(printable(e.Send.Reason), 80)))
	}
	s.table(t)
	if uncertain {
		s.line("uncertain ones wait for you: inspect uploads resolve KEY --as settled|retry --why TEXT")
	}
	return nil
}

// noUploads says what an empty list means, and where the others are.
func noUploads(ctx context.Context, ledger *idempotency.Ledger, f idempotency.Filter) (string, error) {
	states := make([]string, len(f.States))
	for i, state := range f.States {
		states[i] = string(state)
	}
	what := "nothing " + strings.Join(states, " or ")
	switch {
	case len(f.States) == len(idempotency.States):
		what = "no upload"
	case slices.Equal(f.States, needAPerson):
		what = "nothing uncertain or under way"
	}
	f.States, f.Limit = nil, 100_000
	others, err := ledger.List(ctx, f)
	if err != nil {
		return "", err
	}
	n := map[idempotency.State]int64{}
	for _, e := range others {
		n[e.State]++
	}
	var parts []string
	for _, state := range idempotency.States {
		if n[state] > 0 {
			parts = append(parts, thousands(n[state])+" "+string(state))
		}
	}
	if len(parts) > 0 {
		what += "; --state all lists the " + strings.Join(parts, ", ")
	}
	return what, nil
}

func uploadCell(state idempotency.State) cell {
	switch state {
	case idempotency.Settled:
		return tinted(string(state), green)
	case idempotency.Uncertain, idempotency.Rejected:
		return tinted(string(state), red)
	default:
		return text(string(state))
	}
}

func newUploadsShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show KEY",
		Short: "All the ledger knows of one upload: sends, slot, decisions (costs nothing)",
		Example: `  inspect uploads show upload_5f…
  inspect uploads show upload_5f… --json
  inspect why upload_5f…        # what its task waits for`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), needsStore, func(ctx context.Context, s *session) error { return s.showUpload(ctx, args[0]) })
		},
	}
}

// auditRow is a decision or late report, for --json.
type auditRow struct {
	At         *time.Time `json:"at"`
	Who        string     `json:"who"`
	What       string     `json:"what"`
	Why        string     `json:"why"`
	Generation int64      `json:"generation"`
}

func (s *session) showUpload(ctx context.Context, key string) error {
	ledger, err := s.ledger(ctx)
	if err != nil {
		return err
	}
	if key, err = s.fullKey(ctx, key); err != nil {
		return err
	}
	d, err := ledger.Show(ctx, key)
	if errors.Is(err, idempotency.ErrUnknownKey) {
		return refused("the ledger knows no upload %s", shownName(key))
	}
	if err != nil {
		return err
	}
	replaced := d.Owner.Key != "" && d.Owner.Key != key
	if s.json {
		row := struct {
			uploadRow
			Sends []*sendRow `json:"sends"`
			Trail []auditRow `json:"trail"`
		}{uploadRow{key, d.Source, d.AudioID, d.SHA256, d.Status.Generation, d.Status.State, stamp(d.Since), replaced, sendOf(d.Status.Send)}, []*sendRow{}, []auditRow{}}
		for _, send := range d.Sends {
			row.Sends = append(row.Sends, sendOf(send))
		}
		for _, t := range d.Trail {
			row.Trail = append(row.Trail, auditRow{stamp(t.At), t.Who, t.What, t.Why, t.Generation})
		}
		return s.writeJSON(row)
	}
	s.line("%s   audio_id %d of source %s, generation %d, content %s", s.paint(string(d.Status.State), uploadCell(d.Status.State).colour),
		d.AudioID, d.Source, d.Status.Generation, firstOf(short(d.SHA256, 13), "of a URL"))
	if replaced {
		s.line("  slot      belongs to %s since %s", d.Owner.Key, s.clock(d.Owner.Since))
	}
	for _, send := range d.Sends {
		s.line("  send      generation %d %s at %s, %s%s%s", send.Generation, send.State, s.clock(send.SentAt), send.AttemptID,
			tail(", request id ", printable(send.RequestID)), tail(": ", printable(send.Reason)))
	}
	for _, t := range d.Trail {
		s.line("  decided   %s %s: %s (%s)", s.clock(t.At), printable(t.Who), t.What, printable(t.Why))
	}
	if d.Status.State == idempotency.Uncertain {
		s.line("  to do     inspect uploads resolve %s --as settled|retry --why TEXT", key)
	}
	return nil
}
