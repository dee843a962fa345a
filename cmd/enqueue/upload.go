package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"reprise/intake"
	"reprise/tasks"
)

// uploadFlags are those of upload alone.
type uploadFlags struct {
	audioID         int64
	manifest        string
	nextID, replace bool
	source, by      string
}

func newUpload(a *app) *cobra.Command {
	var u uploadFlags
	cmd := &cobra.Command{
		Use:   "upload {--audio-id N FILE | --manifest FILE | --next-id FILE…} [flags]",
		Short: "Queue uploads to your custom catalog; costs units: every upload is billed and cannot be undone (--dry-run costs nothing)",
		Long: `Every upload is billed, takes the slot audio_id of an account, and cannot be undone: AudD lists and
deletes nothing. What was uploaded is known here and never sent again by itself; what may have arrived
is left to you (inspect uploads). A slot that holds other content is refused without --replace.

A manifest is CSV (named columns in the first line) or JSONL, in UTF-8; - reads it from standard input:
  audio_id     integer, 0 or more; may be missing with --next-id
  file or url  the audio; a relative file is relative to the manifest
  external_id  your own name for it          source  the account, if not --source
  metadata     a JSON object                 meta.NAME  one value of it
Rows are counted from 1 without the header. A bad one is named, and the others go on; a column
nobody knows stops the whole file.`,
		Example: `  enqueue upload --audio-id 7 track.flac --wait
  enqueue upload --manifest catalog.csv --dry-run --price-per-1000 5
  enqueue upload --next-id masters/                  # allots ids, the same ones when run again`,
		RunE: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed("audio-id")
			if err := u.check(given, args); err != nil {
				return &failure{exitUsage, err}
			}
			req, err := u.request(a, given)
			if err != nil {
				return &failure{exitUsage, err}
			}
			a.uploads = true
			if u.manifest == "" {
				return a.submit(cmd.Context(), req, args)
			}
			return a.submitManifest(cmd.Context(), req, u.manifest)
		},
	}
	f := cmd.Flags()
	f.Int64Var(&u.audioID, "audio-id", 0, "slot of the one FILE or URL")
	f.StringVar(&u.manifest, "manifest", "", "CSV or JSONL with a row for each upload, - for standard input")
	f.BoolVar(&u.nextID, "next-id", false, "allot an audio_id to each file that has none, the same one again for the same content")
	f.BoolVar(&u.replace, "replace", false, "overwrite slots that hold other content; audited")
	f.StringVar(&u.source, "source", "main", "account to upload to, as the worker's settings name it")
	f.StringVar(&u.by, "by", "", "who asks, for the audit trail of --replace and --force (default $USER)")
	f.BoolVar(&a.yes, "yes", false, "do not ask before --force sends, and bills, again")
	return cmd
}

// check finds combinations that mean nothing.
func (u *uploadFlags) check(given bool, args []string) error {
	switch {
	case u.manifest != "" && len(args) > 0:
		return errors.New("--manifest names the files itself: leave them out")
	case u.manifest != "" && given:
		return errors.New("--audio-id is for one file, --manifest has its own audio_ids")
	case u.manifest != "":
		return nil
	case given && u.nextID:
		return errors.New("an audio_id is either given (--audio-id) or allotted (--next-id)")
	case given && u.audioID < 0:
		return fmt.Errorf("--audio-id %d: want 0 or more", u.audioID)
	case given && len(args) != 1:
		return fmt.Errorf("--audio-id takes one file or URL, not %d", len(args))
	case given:
		return nil
	case !u.nextID:
		return errors.New("say which slots: --audio-id N FILE, --manifest FILE or --next-id FILE…")
	case len(args) == 0:
		return errors.New("--next-id needs files")
	}
	return nil
}

func (u *uploadFlags) request(a *app, given bool) (intake.Request, error) {
	req := intake.Request{
		Path: tasks.Upload, Params: tasks.Params{Source: u.source}, Group: a.group, Force: a.force,
		NextID: u.nextID, Replace: u.replace, By: u.by,
	}
	if given {
		req.Params.AudioID = &u.audioID
	}
	for _, name := range []string{"USER", "LOGNAME"} {
		if req.By == "" {
			req.By = a.getenv(name)
		}
	}
	if req.By == "" && (req.Force || req.Replace) {
		return req, errors.New("--replace and --force are audited: say who you are with --by, $USER is not set")
	}
	return req, nil
}

// submitManifest is submit for the rows of a manifest.
func (a *app) submitManifest(ctx context.Context, req intake.Request, name string) error {
	in, dir, shown := a.std.in, "", "manifest"
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return &failure{exitUsage, fmt.Errorf("open the manifest: %w", err)}
		}
		defer file.Close()
		in, dir, shown = file, filepath.Dir(name), name
	}
	m, err := intake.ReadManifest(ctx, in, shown, dir)
	if err != nil {
		return a.stopped(ctx, &failure{exitUsage, err}, nothingQueued)
	}
	return a.process(ctx, req, func(s *session, progress func(intake.Progress)) (*intake.Plan, error) {
		return s.intake.PlanManifest(ctx, req, m, progress)
	})
}
