package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reprise/idempotency"
	"reprise/internal/cli"
	"reprise/internal/text"
	"reprise/ops"
)

func newUploads(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "uploads",
		Short: "The upload ledger: what was sent, what is uncertain, and resolving it",
		Long: `An upload that may have arrived is never sent again by itself: an operator checks and says whether it arrived.
Every decision is kept with who, when and why.`,
		Example: `  inspect uploads list
  inspect uploads show upload_5f…
  inspect uploads resolve upload_5f… --as settled --why "found by its fingerprint"`,
	}
	cmd.AddCommand(newUploadsList(a), newUploadsShow(a), newUploadsResolve(a), newUploadsAdopt(a))
	return cmd
}

// uploadFlags choose uploads.
type uploadFlags struct {
	states   []string
	source   string
	audioIDs []int64
	period   periodFlags
	limit    int
}

// allStates is --state for every state.
const allStates = "all"

func (f *uploadFlags) add(cmd *cobra.Command, states []idempotency.State) {
	fs := cmd.Flags()
	fs.StringSliceVar(&f.states, "state", wordsOf(states), strings.Join(wordsOf(idempotency.States), ", ")+", "+allStates)
	fs.StringVar(&f.source, "source", "", "only this account's catalog")
	fs.Int64SliceVar(&f.audioIDs, "audio-id", nil, "only these slots")
	f.period.add(cmd, "only uploads that were sent", "")
	fs.IntVar(&f.limit, "limit", 1000, "at most this many")
}

func wordsOf(states []idempotency.State) []string {
	out := make([]string, len(states))
	for i, s := range states {
		out[i] = string(s)
	}
	return out
}

// chosen reports whether a flag narrows the choice.
func (f *uploadFlags) chosen() bool {
	return f.source != "" || f.period.chosen() || len(f.audioIDs) > 0
}

func (f *uploadFlags) filter(t text.Times) (out idempotency.Filter, err error) {
	out = idempotency.Filter{Source: f.source, AudioIDs: f.audioIDs, Limit: f.limit}
	for _, state := range f.states {
		out.States = append(out.States, idempotency.State(state))
	}
	if slices.Contains(f.states, allStates) {
		out.States = idempotency.States
	}
	out.SentFrom, out.SentBefore, err = f.period.read(t)
	return out, err
}

func newUploadsList(a *app) *cobra.Command {
	var f uploadFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Uploads by state; by default those that need an operator or are under way",
		Example: `  inspect uploads list
  inspect uploads list --state settled --source main
  inspect uploads list --state all --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), needsLedger, func(ctx context.Context, s *session) error {
				filter, err := f.filter(s.Times)
				if err != nil {
					return err
				}
				r, err := s.Uploads.List(ctx, filter)
				if err != nil {
					return err
				}
				return s.show(r.Uploads, func() error { return s.printUploads(r, filter) })
			})
		},
	}
	f.add(cmd, ops.NeedOperator)
	return cmd
}

func (s *session) printUploads(r ops.UploadsReport, f idempotency.Filter) error {
	if len(r.Uploads) == 0 {
		s.Line("%s", noUploads(r, f.States))
		return nil
	}
	t := cli.Table{Head: []string{"KEY", "SOURCE", "AUDIO ID", "STATE", "SENT", "REASON"}}
	uncertain := false
	for _, u := range r.Uploads {
		uncertain = uncertain || u.State == idempotency.Uncertain
		sent, reason := "–", ""
		if u.Send != nil {
			sent, reason = s.Since(at(u.Send.SentAt)), text.Short(text.Printable(u.Send.Reason), 80)
		}
		t.Add(cli.Text(ops.ShortKey(u.Key)), cli.Text(u.Source), cli.Number(strconv.FormatInt(u.AudioID, 10)), coloured(string(u.State), uploadColour(u.State)), cli.Text(sent), cli.Text(reason))
	}
	if err := s.Table(t); err != nil {
		return err
	}
	if uncertain {
		s.Line("uncertain ones wait for an operator: inspect uploads resolve KEY --as settled|retry --why TEXT")
	}
	return nil
}

// noUploads says what an empty list means, and where the others are.
func noUploads(r ops.UploadsReport, states []idempotency.State) string {
	what := "no " + strings.Join(wordsOf(states), " or ") + " uploads"
	if len(states) == len(idempotency.States) {
		what = "no uploads"
	}
	var parts []string
	for _, state := range idempotency.States {
		if n := r.Others[state]; n > 0 {
			parts = append(parts, text.Thousands(n)+" "+string(state))
		}
	}
	return what + after("; --state all lists the ", strings.Join(parts, ", "))
}

func uploadColour(state idempotency.State) cli.Colour {
	switch state {
	case idempotency.Settled:
		return cli.Green
	case idempotency.Uncertain, idempotency.Rejected:
		return cli.Red
	default:
		return ""
	}
}

func newUploadsShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show KEY",
		Short: "Everything the ledger knows of one upload: sends, slot, decisions",
		Example: `  inspect uploads show upload_5f…
  inspect uploads show upload_5f… --json
  inspect why upload_5f…        # what its task waits for`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), needsLedger, func(ctx context.Context, s *session) error {
				d, err := s.Uploads.Show(ctx, args[0])
				if err != nil {
					return err
				}
				return s.show(d, func() error { s.printUpload(d); return nil })
			})
		},
	}
}

func (s *session) printUpload(d ops.UploadDetail) {
	content := text.Short(d.SHA256, 13)
	if content == "" {
		content = "of a URL"
	}
	s.Line("%s   audio_id %d of source %s, generation %d, content %s", s.Paint(string(d.State), uploadColour(d.State)), d.AudioID, d.Source, d.Generation, content)
	if d.Replaced {
		s.Line("  slot      belongs to %s since %s", d.Owner, s.At(at(d.OwnerSince)))
	}
	for _, send := range d.Sends {
		s.Line("  send      generation %d %s at %s, %s%s%s", send.Generation, send.State, s.At(at(send.SentAt)), send.AttemptID,
			after(", request id ", text.Printable(send.RequestID)), after(": ", text.Printable(send.Reason)))
	}
	for _, t := range d.Trail {
		s.Line("  decided   %s %s: %s (%s)", s.At(at(t.At)), t.Who, t.What, t.Why)
	}
	if d.State == idempotency.Uncertain {
		s.Line("  to do     inspect uploads resolve %s --as settled|retry --why TEXT", d.Key)
	}
}

func newUploadsResolve(a *app) *cobra.Command {
	var f uploadFlags
	var r ops.ResolveRequest
	var as string
	var yes bool
	cmd := &cobra.Command{
		Use:   "resolve [KEY…] --as settled|retry --why TEXT",
		Short: "Decide about uploads that may have arrived (retry sends again and is billed as a new upload)",
		Long: `settled: it arrived, its task is done. retry: send it again; refused while the earlier send may still be under way.
Without keys it decides about all uncertain uploads that the flags choose, and needs --yes. Repeating a decision is harmless.`,
		Example: `  inspect uploads resolve upload_5f… --as settled --why "found by its fingerprint"
  inspect uploads resolve --source main --since 2h --as retry --why "AudD was down" --yes
  inspect uploads resolve upload_5f… --as retry --why "not in the catalog" --by alice`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Keys, r.As = args, idempotency.Resolution(as)
			if err := r.Check(); err != nil {
				return cli.Errorf(cli.Usage, "--as and --why: %w", err)
			}
			if len(args) > 0 && f.chosen() {
				return cli.Errorf(cli.Usage, "give keys or flags that choose, not both")
			}
			return a.with(cmd.Context(), needsRedis|needsQueue|needsLedger, func(ctx context.Context, s *session) error {
				r.By = s.by()
				if len(r.Keys) == 0 {
					if done, err := s.chooseUploads(ctx, f, &r, yes); err != nil || done {
						return err
					}
				}
				return s.resolve(ctx, r)
			})
		},
	}
	f.add(cmd, []idempotency.State{idempotency.Uncertain})
	cmd.Flags().StringVar(&as, "as", "", "settled (it arrived) or retry (send it again)")
	cmd.Flags().StringVar(&r.Why, "why", "", "how you know; kept for good")
	cmd.Flags().BoolVar(&yes, "yes", false, "decide about all uploads that the flags choose")
	return cmd
}

// chooseUploads sets the keys that the flags choose. done means that there are none.
func (s *session) chooseUploads(ctx context.Context, f uploadFlags, r *ops.ResolveRequest, yes bool) (done bool, err error) {
	filter, err := f.filter(s.Times)
	if err != nil {
		return false, err
	}
	found, err := s.Uploads.List(ctx, filter)
	if err != nil {
		return false, err
	}
	for _, u := range found.Uploads {
		r.Keys = append(r.Keys, u.Key)
	}
	switch {
	case len(r.Keys) == 0:
		s.Line("%s", noUploads(found, filter.States))
		return true, nil
	case !yes:
		return false, cli.Errorf(cli.Usage, "this would decide about %s: add --yes, or give keys", text.Count(len(r.Keys), "upload", "uploads"))
	}
	return false, nil
}

func (s *session) resolve(ctx context.Context, r ops.ResolveRequest) error {
	rows, err := s.Uploads.Resolve(ctx, r)
	if err != nil {
		return err
	}
	failed := 0
	for _, row := range rows {
		if row.Error != "" {
			failed++
		}
	}
	err = s.show(rows, func() error {
		for _, row := range rows {
			s.printResolved(row, r.As)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case failed > 0 && failed == len(r.Keys):
		return &cli.Error{Code: cli.Failed}
	case failed > 0 || len(rows) < len(r.Keys):
		return &cli.Error{Code: cli.Partial}
	}
	return nil
}

func (s *session) printResolved(row ops.Resolved, as idempotency.Resolution) {
	if row.Error != "" {
		fmt.Fprintf(s.Err, "inspect: %s: %s\n", row.Key, text.Printable(row.Error))
		return
	}
	what := "settled: it arrived"
	if as == idempotency.AsRetry {
		what = "may be sent again"
	}
	if row.Already {
		what += " (decided before)"
	}
	if row.Queued {
		what += "; its task is queued to act on that"
	}
	s.Line("%s %s", row.Key, what)
}

func newUploadsAdopt(a *app) *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use:   "adopt --why TEXT",
		Short: "Accept a restored or new upload ledger, so that uploads go on",
		Long: `Redis remembers the ledger's latest entry. A ledger that lacks it was restored from a backup or is another one, and uploads
are blocked, because what it lacks may have been sent. Check what it lacks before you adopt it.`,
		Example: `  inspect uploads adopt --why "restored last night's backup, catalog compared"
  inspect uploads adopt --why "new store" --by alice
  inspect uploads list --state all          # what the ledger knows`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if strings.TrimSpace(why) == "" {
				return cli.Errorf(cli.Usage, "--why TEXT is required: the decision is kept with its reason")
			}
			return a.with(cmd.Context(), needsRedis|needsLedger, func(ctx context.Context, s *session) error {
				r, err := s.Uploads.Adopt(ctx, s.by(), why)
				if err != nil {
					return err
				}
				return s.show(r, func() error {
					if !r.Adopted {
						s.Line("nothing to adopt: the ledger is the one that is remembered")
						return nil
					}
					s.Line("adopted: ledger %s at %d in place of %s at %d; uploads go on", text.Short(r.Mark.Ledger, 9), r.Mark.Seq, text.Short(r.Remembered.Ledger, 9), r.Remembered.Seq)
					return nil
				})
			})
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "how you know that it is right; kept for good")
	return cmd
}
