package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/idempotency"
	"reprise/intake"
	"reprise/internal/redisconn"
	"reprise/store"
)

// resolveFlags are what resolve was told.
type resolveFlags struct {
	uploadFlags
	as, why string
	yes     bool
}

func newUploadsResolve(a *app) *cobra.Command {
	var f resolveFlags
	cmd := &cobra.Command{
		Use:   "resolve [KEY…] --as settled|retry --why TEXT",
		Short: "Decide about uploads that may have arrived (settled costs nothing; retry is billed as a new upload)",
		Long: `settled: it arrived, its task is done. retry: send it again; refused while the earlier send may still be on its way.
Without keys it decides all uncertain uploads that the flags choose, once --yes says so. Repeating a decision is harmless.`,
		Example: `  inspect uploads resolve upload_5f… --as settled --why "found by its fingerprint"
  inspect uploads resolve --source main --since 2h --as retry --why "AudD was down" --yes
  inspect uploads resolve upload_5f… --as retry --why "not in the catalog" --by alice`,
		RunE: func(cmd *cobra.Command, args []string) error {
			as, err := word("as", f.as, []idempotency.Resolution{idempotency.AsSettled, idempotency.AsRetry})
			switch {
			case err != nil:
				return err
			case as == "":
				return usage("--as settled or --as retry is required")
			case strings.TrimSpace(f.why) == "":
				return usage("--why TEXT is required: the decision is kept with its reason")
			case len(args) > 0 && f.chosen():
				return usage("give keys or flags that choose, not both")
			}
			return a.with(cmd.Context(), needsRedis|needsStore, func(ctx context.Context, s *session) error {
				return s.resolveUploads(ctx, f, as, args)
			})
		},
	}
	f.add(cmd, []idempotency.State{idempotency.Uncertain})
	cmd.Flags().StringVar(&f.as, "as", "", "settled (it arrived) or retry (send it again)")
	cmd.Flags().StringVar(&f.why, "why", "", "how you know; kept for good")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "decide all that the flags choose")
	return cmd
}

// resolvedRow is a decision for --json.
type resolvedRow struct {
	Key        string `json:"key"`
	Generation int64  `json:"generation"`
	Already    bool   `json:"already"` // had been decided so before
	Queued     bool   `json:"queued"`  // its task runs again to take the decision up
	Error      string `json:"error,omitempty"`
}

func (s *session) resolveUploads(ctx context.Context, f resolveFlags, as idempotency.Resolution, keys []string) error {
	who := s.by()
	ledger, err := s.ledger(ctx)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		if keys, err = s.chooseUploads(ctx, ledger, f); err != nil || len(keys) == 0 {
			return err
		}
	}
	if keys, err = s.fullKeys(ctx, keys); err != nil {
		return err
	}
	rdb, err := redisconn.Queue(s.redisURL, 4)
	if err != nil {
		return err
	}
	defer rdb.Close()
	in, err := intake.New(intake.Options{Redis: rdb, Store: s.store})
	if err != nil {
		return fmt.Errorf("resolve: %w", err)
	}
	act := idempotency.Action{By: who, Why: f.why, At: time.Now()}
	rows := []resolvedRow{}
	bad := 0
	for _, key := range keys {
		if ctx.Err() != nil {
			break
		}
		row, err := s.resolveOne(ctx, ledger, in, decision{key, as, act})
		if err != nil {
			return err
		}
		if row.Error != "" {
			bad++
		}
		rows = append(rows, row)
		s.resolved(row, as)
	}
	if s.json {
		if err := s.writeJSON(rows); err != nil {
			return err
		}
	}
	switch {
	case bad > 0 && bad == len(keys):
		return &failure{code: exitRefused}
	case bad > 0 || len(rows) < len(keys):
		return &failure{code: exitSome}
	}
	return nil
}

// chooseUploads are the uploads that the flags choose; without --yes it only
// says how many.
func (s *session) chooseUploads(ctx context.Context, ledger *idempotency.Ledger, f resolveFlags) ([]string, error) {
	filter, err := f.filter(s.zone)
	if err != nil {
		return nil, err
	}
	found, err := ledger.List(ctx, filter)
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(found))
	for i, e := range found {
		keys[i] = e.Key
	}
	switch {
	case len(keys) == 0:
		none, err := noUploads(ctx, ledger, filter)
		if err != nil {
			return nil, err
		}
		s.line("%s", none)
	case !f.yes:
		return nil, usage("this would decide %s: say --yes, or give keys", count(len(keys), "upload", "uploads"))
	}
	return keys, nil
}

// decision is one upload's.
type decision struct {
	key string
	as  idempotency.Resolution
	act idempotency.Action
}

// resolveOne writes the decision into the ledger, then lets the task run: its
// delivery asks the ledger, and is done or sends. Repeating it after a crash in
// between goes on.
func (s *session) resolveOne(ctx context.Context, ledger *idempotency.Ledger, in *intake.Intake, d decision) (resolvedRow, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	row := resolvedRow{Key: shownName(d.key)}
	got, err := ledger.Resolve(ctx, d.key, d.as, d.act)
	var early *idempotency.TooEarlyError
	var not *idempotency.NotResolvableError
	switch {
	case errors.As(err, &early):
		row.Error = "too early: the earlier send may still be on its way until " + s.until(early.Until)
		return row, nil
	case errors.Is(err, idempotency.ErrUnknownKey):
		row.Error = idempotency.ErrUnknownKey.Error()
		return row, nil
	case errors.As(err, &not):
		row.Error = strings.TrimPrefix(err.Error(), "resolve an upload: ")
		return row, nil
	case err != nil:
		return row, err
	}
	row.Generation, row.Already = got.Generation, got.Already
	_, err = in.Release(ctx, d.key)
	switch {
	case err == nil:
		row.Queued = true
	case errors.Is(err, intake.ErrNotReplayable), errors.Is(err, store.ErrUnknownKey): // it waits anyway, or has its verdict
	case store.IsUnavailable(err):
		return row, err
	default:
		row.Error = "decided, but its task could not be queued; repeat the command: " + strings.TrimPrefix(err.Error(), "replay: ")
	}
	return row, nil
}

func (s *session) resolved(row resolvedRow, as idempotency.Resolution) {
	if s.json {
		return
	}
	if row.Error != "" {
		fmt.Fprintf(s.std.err, "inspect: %s: %s\n", row.Key, printable(row.Error))
		return
	}
	what := map[idempotency.Resolution]string{idempotency.AsSettled: "settled: it arrived", idempotency.AsRetry: "may be sent again"}[as]
	if row.Already {
		what += " (decided before)"
	}
	if row.Queued {
		what += "; its task is queued to take that up"
	}
	s.line("%s %s", row.Key, what)
}

func newUploadsAdopt(a *app) *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use:   "adopt --why TEXT",
		Short: "Accept a restored or new upload ledger, so that uploads go on (costs nothing)",
		Long: `Redis remembers the ledger's latest entry. A ledger that lacks it was restored from a backup or is another one, and uploads
are closed, because what it does not know may have been sent. Check what it lacks first; adopting is your word that it is right.`,
		Example: `  inspect uploads adopt --why "restored last night's backup, catalog compared"
  inspect uploads adopt --why "new store" --by alice
  inspect uploads list --state all          # what the ledger knows`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if strings.TrimSpace(why) == "" {
				return usage("--why TEXT is required: the decision is kept with its reason")
			}
			return a.with(cmd.Context(), needsRedis|needsStore, func(ctx context.Context, s *session) error { return s.adopt(ctx, why) })
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "how you know that it is right; kept for good")
	return cmd
}

// ledgerMark is where workers remember the ledger's latest mark: a hash with
// ledger, seq, token. Adopting leaves it alone: the adopted ledger knows the
// remembered mark from then on, and the next upload writes a newer one.
const ledgerMark = "reprise:{ledger}:mark"

func (s *session) adopt(ctx context.Context, why string) error {
	who := s.by()
	ledger, err := s.ledger(ctx)
	if err != nil {
		return err
	}
	remembered, err := s.rememberedMark(ctx)
	if err != nil {
		return err
	}
	check := ledger.Check(ctx, remembered)
	var behind *idempotency.BehindError
	if check != nil && !errors.As(check, &behind) {
		return check
	}
	mark, err := ledger.Adopt(ctx, remembered, idempotency.Action{By: who, Why: why, At: time.Now()})
	if err != nil {
		return err
	}
	if s.json {
		return s.writeJSON(struct {
			Adopted bool             `json:"adopted"`
			Mark    idempotency.Mark `json:"mark"`
		}{behind != nil, mark})
	}
	if behind == nil {
		s.line("nothing to adopt: the ledger is the one that is remembered")
		return nil
	}
	s.line("adopted: ledger %s at %d in place of %s at %d; uploads go on", short(mark.Ledger, 9), mark.Seq, short(remembered.Ledger, 9), remembered.Seq)
	return nil
}

func (s *session) rememberedMark(ctx context.Context) (idempotency.Mark, error) {
	h, err := s.rdb.HGetAll(ctx, ledgerMark).Result()
	if err != nil {
		return idempotency.Mark{}, fmt.Errorf("read the remembered ledger mark: %w", err)
	}
	if len(h) == 0 {
		return idempotency.Mark{}, nil
	}
	seq, err := strconv.ParseInt(h["seq"], 10, 64)
	if err != nil {
		return idempotency.Mark{}, fmt.Errorf("read the remembered ledger mark: %w", err)
	}
	return idempotency.Mark{Ledger: h["ledger"], Seq: seq, Token: h["token"]}, nil
}
