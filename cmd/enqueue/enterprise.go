package main

import (
	"github.com/spf13/cobra"

	"reprise/intake"
	"reprise/tasks"
)

func newEnterprise(a *app) *cobra.Command {
	var params tasks.Params
	var skip, every, limit int
	var maxUnits int64
	cmd := &cobra.Command{
		Use:   "enterprise INPUT…",
		Short: "Queue long recordings (costs units: 1 per 12 s scanned)",
		Long: `An INPUT is a file, a folder (including its subfolders), a quoted glob pattern, an http or https URL,
or - for a list on standard input. --max-units is required when the length cannot be measured (URLs,
some formats).`,
		Example: `  enqueue enterprise mix.flac --dry-run
  enqueue enterprise radio/ --every 1 --skip 4        # scan 12 s of every minute
  enqueue enterprise https://example.com/show.mp3 --max-units 300`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for name, v := range map[string]struct {
				from *int
				to   **int
			}{"skip": {&skip, &params.Skip}, "every": {&every, &params.Every}, "limit": {&limit, &params.Limit}} {
				if cmd.Flags().Changed(name) {
					*v.to = v.from
				}
			}
			req := intake.Request{Path: tasks.Enterprise, Params: params, MaxUnits: maxUnits, Group: a.group, Force: a.force}
			return a.submit(cmd.Context(), req, args)
		},
	}
	f := cmd.Flags()
	f.IntVar(&every, "every", 1, "number of consecutive 12 s chunks to scan")
	f.IntVar(&skip, "skip", 0, "number of 12 s chunks to skip after the chunks that --every scans")
	f.IntVar(&limit, "limit", 0, "AudD's limit parameter; it does not lower the units shown, because AudD does not document its unit")
	f.IntVar(&params.SkipFirstSeconds, "skip-first-seconds", 0, "seconds to skip at the start")
	f.BoolVar(&params.UseTimecode, "use-timecode", false, "start at the time given in a video URL (t, time_continue or start)")
	f.Int64Var(&maxUnits, "max-units", 0, "maximum units per recording")
	return cmd
}
