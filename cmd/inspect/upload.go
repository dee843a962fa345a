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
		Short: "The upload ledger: what was sent, what is uncertain, and deciding about it",
		Long: `An upload that may have arrived is never sent again automatically: an operator checks whether it arrived, and decides.
Every decision is stored with who, when and why.`,
		Example: `  inspect uploads list
  inspect uploads show upload_5f…
  inspect uploads resolve upload_5f… --as settled --why "found by its fingerprint"`,
	}
	cmd.AddCommand(newUploadsList(a), newUploadsShow(a), newUploadsResolve(a), newUploadsAdopt(a))
	return cmd
}

// uploadFlags select uploads.
type uploadFlags struct {
	states   []string
	source   string
	audioIDs []int64
	period   periodFlags
	limit    int
}

// allStates is the value of --state that selects every state.
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

// chosen reports whether a flag other than --state selects uploads.
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
		Short: "Uploads by state; by default the uncertain ones and those in flight",
		Example: `  inspect uploads list
  inspect uploads list --state settled --source main
  inspect uploads list --state all --json`,
		Args: cobra.NoArgs,
		RunE: a.run(needsStore, func(ctx context.Context, s *session, _ []string) error {
			filter, err := f.filter(s.Times)
			if err != nil {
				return err
			}
			r, err := s.Uploads.List(ctx, filter)
			return s.show(r.Uploads, err, func() { s.printUploads(r, filter) })
		}),
	}
	f.add(cmd, []idempotency.State{idempotency.Uncertain, idempotency.Sent})
	return cmd
}

func (v view) printUploads(r ops.UploadsReport, f idempotency.Filter) {
	if len(r.Uploads) == 0 {
		v.Line("%s", noUploads(r, f.States))
		return
	}
	t := cli.Table{Head: []string{"KEY", "SOURCE", "AUDIO ID", "STATE", "SENT", "REASON"}}
	uncertain := false
	for _, u := range r.Uploads {
		uncertain = uncertain || u.State == idempotency.Uncertain
		sent, reason := "–", ""
		if u.Send.State != "" {
			sent, reason = v.Since(u.Send.SentAt), text.Short(u.Send.Reason, 80)
		}
		state := coloured(string(u.State), string(u.State))
		t.Add(ops.ShortKey(u.Key), u.Source, cli.Number(strconv.FormatInt(u.AudioID, 10)), state, sent, reason)
	}
	v.Table(t)
	if uncertain {
		v.Line("uncertain uploads wait for an operator: inspect uploads resolve KEY --as settled|retry --why TEXT")
	}
}

// noUploads says that no upload is in these states, and which states have uploads.
func noUploads(r ops.UploadsReport, states []idempotency.State) string {
	none := "no " + strings.Join(wordsOf(states), " or ") + " uploads"
	if len(states) == len(idempotency.States) {
		none = "no uploads"
	}
	var parts []string
	for _, state := range idempotency.States {
		if n := r.Others[state]; n > 0 {
			parts = append(parts, text.Thousands(n)+" "+string(state))
		}
	}
	return none + after("; --state all lists the ", strings.Join(parts, ", "))
}

func newUploadsShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show KEY",
		Short: "One upload in the ledger: its sends, slot and decisions",
		Example: `  inspect uploads show upload_5f…
  inspect uploads show upload_5f… --json
  inspect why upload_5f…        # what its task waits for`,
		Args: cobra.ExactArgs(1),
		RunE: a.run(needsStore, func(ctx context.Context, s *session, args []string) error {
			d, err := s.Uploads.Show(ctx, args[0])
			return s.show(d, err, func() { s.printUpload(d) })
		}),
	}
}

func (v view) printUpload(d ops.UploadDetail) {
	content := text.Short(d.SHA256, 13)
	if content == "" {
		content = "of a URL"
	}
	state := v.Paint(string(d.State), colours[string(d.State)])
	v.Line("%s   audio_id %d of source %s, generation %d, content %s", state, d.AudioID, d.Source, d.Generation, content)
	if d.Replaced {
		v.Line("  slot      belongs to %s since %s", d.Owner, v.At(at(d.OwnerSince)))
	}
	for _, send := range d.Sends {
		v.Line("  send      generation %d %s at %s, %s%s%s", send.Generation, send.State, v.At(send.SentAt), send.AttemptID,
			after(", request id ", text.Printable(send.RequestID)), after(": ", text.Printable(send.Reason)))
	}
	for _, t := range d.Trail {
		v.Line("  decided   %s %s: %s (%s)", v.At(t.At), t.Who, t.What, t.Why)
	}
	if d.State == idempotency.Uncertain {
		v.Line("  to do     inspect uploads resolve %s --as settled|retry --why TEXT", d.Key)
	}
}

// resolveFlags are the flags of resolve.
type resolveFlags struct {
	uploadFlags
	as, why string
	yes     bool
}

func newUploadsResolve(a *app) *cobra.Command {
	var f resolveFlags
	cmd := &cobra.Command{
		Use:   "resolve [KEY…] --as settled|retry --why TEXT",
		Short: "Decide about uploads that may have arrived (retry sends again and is billed as a new upload)",
		Long: `settled: the upload arrived, and its task is done. retry: it is sent again; refused while the earlier send may be in flight.
Without keys the command decides about all uncertain uploads that the flags select, and needs --yes. It can be repeated.`,
		Example: `  inspect uploads resolve upload_5f… --as settled --why "found by its fingerprint"
  inspect uploads resolve --source main --since 2h --as retry --why "AudD was down" --yes
  inspect uploads resolve upload_5f… --as retry --why "not in the catalog" --by alice`,
		RunE: a.run(needsRedis|needsStore, f.resolve),
	}
	f.add(cmd, []idempotency.State{idempotency.Uncertain})
	cmd.Flags().StringVar(&f.as, "as", "", "settled (it arrived) or retry (send it again)")
	cmd.Flags().StringVar(&f.why, "why", "", "how you know (required); stored permanently")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "decide about all uploads that the flags select")
	return cmd
}

func (f *resolveFlags) resolve(ctx context.Context, s *session, keys []string) error {
	r := ops.ResolveRequest{Keys: keys, As: idempotency.Resolution(f.as), Why: f.why, By: s.by()}
	if err := r.Check(); err != nil {
		return err
	}
	switch {
	case len(keys) > 0 && f.chosen():
		return cli.Errorf(cli.Usage, "give either keys or flags that select uploads, not both")
	case len(keys) == 0:
		filter, err := f.filter(s.Times)
		if err != nil {
			return err
		}
		found, err := s.Uploads.List(ctx, filter)
		if err != nil {
			return err
		}
		if len(found.Uploads) == 0 {
			s.Line("%s", noUploads(found, filter.States))
			return nil
		}
		if !f.yes {
			return cli.Errorf(cli.Usage, "this would decide about %s: add --yes, or give keys", text.Count(len(found.Uploads), "upload", "uploads"))
		}
		for _, u := range found.Uploads {
			r.Keys = append(r.Keys, u.Key)
		}
	}
	rows, err := s.Uploads.Resolve(ctx, r)
	if err := s.show(rows, err, func() { s.printResolved(rows, r.As) }); err != nil {
		return err
	}
	failed := 0
	for _, row := range rows {
		if row.Error != "" {
			failed++
		}
	}
	switch {
	case failed > 0 && failed == len(r.Keys):
		return &cli.Error{Code: cli.Failed}
	case failed > 0 || len(rows) < len(r.Keys):
		return &cli.Error{Code: cli.Partial}
	}
	return nil
}

func (v view) printResolved(rows []ops.Resolved, as idempotency.Resolution) {
	for _, row := range rows {
		if row.Error != "" {
			fmt.Fprintf(v.errors, "inspect: %s: %s\n", row.Key, text.Printable(row.Error))
			continue
		}
		what := "settled: it arrived"
		if as == idempotency.AsRetry {
			what = "may be sent again"
		}
		if row.Already {
			what += " (decided before)"
		}
		if row.Queued {
			what += "; its task is queued to act on the decision"
		}
		v.Line("%s %s", row.Key, what)
	}
}

func newUploadsAdopt(a *app) *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use:   "adopt --why TEXT",
		Short: "Accept a restored or new upload ledger, so that uploads continue",
		Long: `Redis records the ledger's latest entry. A ledger without this entry is another ledger or was restored from a backup.
Uploads stay blocked, because uploads missing from the ledger may have been sent. Check which ones before you adopt it.`,
		Example: `  inspect uploads adopt --why "restored last night's backup, catalog compared"
  inspect uploads adopt --why "new store" --by alice
  inspect uploads list --state all          # all uploads in the ledger`,
		Args: cobra.NoArgs,
		RunE: a.run(needsRedis|needsStore, func(ctx context.Context, s *session, _ []string) error {
			r, err := s.Uploads.Adopt(ctx, s.by(), why)
			return s.show(r, err, func() {
				if !r.Adopted {
					s.Line("nothing to adopt: the entry recorded in Redis is in this ledger")
					return
				}
				s.Line("adopted: ledger %s at %d in place of %s at %d; uploads continue",
					text.Short(r.Mark.Ledger, 9), r.Mark.Seq, text.Short(r.Remembered.Ledger, 9), r.Remembered.Seq)
			})
		}),
	}
	cmd.Flags().StringVar(&why, "why", "", "how you know that the ledger is right (required); stored permanently")
	return cmd
}
