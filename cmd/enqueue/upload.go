package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"reprise/intake"
	"reprise/internal/cli"
	"reprise/tasks"
)

// uploadFlags are the flags that only upload has.
type uploadFlags struct {
	audioID         int64
	manifest        string
	nextID, replace bool
	source, by      string
}

func newUpload(a *app) *cobra.Command {
	var u uploadFlags
	cmd := &cobra.Command{
		Use:   "upload {--audio-id N FILE | --manifest FILE | --next-id FILE…}",
		Short: "Queue uploads to a custom catalog (costs units; an upload cannot be undone)",
		Long: `AudD bills every upload, overwrites the slot audio_id of the account, and can neither list nor delete
uploads. An upload is therefore sent once. You decide whether an upload that may have arrived is sent
again (inspect uploads). A slot that holds other content is refused without --replace.

A manifest is CSV (the first line names the columns) or JSONL, in UTF-8; - reads it from standard input:
  audio_id     integer, 0 or more; optional with --next-id
  file or url  the audio; a relative file is relative to the manifest
  external_id  your own id for the upload          source  the account, if not --source
  metadata     a JSON object                 meta.NAME  one value of it
Rows are counted from 1 without the header. An invalid row is reported and the others are queued; an
unknown column stops the whole file.`,
		Example: `  enqueue upload --audio-id 7 track.flac --wait
  enqueue upload --manifest catalog.csv --dry-run --price-per-1000 5
  enqueue upload --next-id masters/                  # assign ids, the same ones when run again`,
		RunE: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed("audio-id")
			req, err := u.request(a, given)
			if err := errors.Join(u.check(given, args), err); err != nil {
				return cli.WithCode(cli.Usage, err)
			}
			if u.manifest == "" {
				return a.submit(cmd.Context(), req, args)
			}
			return a.submitManifest(cmd.Context(), req, u.manifest)
		},
	}
	f := cmd.Flags()
	f.Int64Var(&u.audioID, "audio-id", 0, "audio_id for one FILE or URL")
	f.StringVar(&u.manifest, "manifest", "", "CSV or JSONL file with one row per upload, - for standard input")
	f.BoolVar(&u.nextID, "next-id", false, "assign an audio_id to each file that has none; the same content keeps its id")
	f.BoolVar(&u.replace, "replace", false, "overwrite slots that hold other content (recorded with the name in --by)")
	f.StringVar(&u.source, "source", "main", "account to upload to, as named in the worker's settings")
	f.StringVar(&u.by, "by", "", "your name, recorded for --replace and --force (default $USER)")
	f.BoolVar(&a.yes, "yes", false, "do not ask before --force sends an upload again, which AudD bills again")
	return cmd
}

// check refuses flags that contradict each other. given = --audio-id was given.
func (u *uploadFlags) check(given bool, args []string) error {
	switch {
	case u.manifest != "" && len(args) > 0:
		return errors.New("--manifest cannot be combined with arguments: remove the arguments")
	case u.manifest != "" && given:
		return errors.New("--audio-id is for one file; a manifest has its own audio_ids")
	case u.manifest != "":
		return nil
	case given && u.nextID:
		return errors.New("use either --audio-id or --next-id, not both")
	case given && u.audioID < 0:
		return fmt.Errorf("--audio-id %d: must be 0 or more", u.audioID)
	case given && len(args) != 1:
		return fmt.Errorf("--audio-id takes one file or URL, not %d", len(args))
	case given:
		return nil
	case !u.nextID:
		return errors.New("choose the slots: --audio-id N FILE, --manifest FILE or --next-id FILE…")
	case len(args) == 0:
		return errors.New("--next-id needs files")
	}
	return nil
}

func (u *uploadFlags) request(a *app, given bool) (intake.Request, error) {
	req := intake.Request{
		Path: tasks.Upload, Params: tasks.Params{Source: u.source}, Group: a.group, Force: a.force,
		NextID: u.nextID, Replace: u.replace, By: cmp.Or(u.by, a.Getenv("USER"), a.Getenv("LOGNAME")),
	}
	if given {
		req.Params.AudioID = &u.audioID
	}
	if req.By == "" && (req.Force || req.Replace) {
		return req, errors.New("--replace and --force are recorded with your name: set --by, because $USER is not set")
	}
	return req, nil
}

// submitManifest is submit for the rows of a manifest.
func (a *app) submitManifest(ctx context.Context, req intake.Request, name string) error {
	in, dir, shown := a.In, "", "manifest"
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return cli.Errorf(cli.Usage, "open the manifest: %w", err)
		}
		defer file.Close()
		in, dir, shown = file, filepath.Dir(name), name
	}
	m, err := intake.ReadManifest(ctx, in, shown, dir)
	if err != nil {
		return stopped(ctx, cli.WithCode(cli.Usage, err), nothingQueued)
	}
	return a.process(ctx, req, func(in *intake.Intake, progress func(intake.Progress)) (*intake.Plan, error) {
		return in.PlanManifest(ctx, req, m, progress)
	})
}
