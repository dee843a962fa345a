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
		Use:   "enterprise INPUT… [flags]",
		Short: "Queue long recordings; costs units: 1 for each 12 s scanned (--dry-run costs nothing)",
		Long: `An INPUT is a file, a folder (taken with everything in it), a pattern in quotes, an http or https URL,
or - for a list on standard input. Where the length cannot be measured (URLs, some formats),
--max-units must say what one recording may cost.`,
		Example: `  enqueue enterprise mix.flac --dry-run
  enqueue enterprise radio/ --every 1 --skip 4        # 12 s of every minute
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
	f.IntVar(&every, "every", 1, "12 s chunks scanned in a row")
	f.IntVar(&skip, "skip", 0, "12 s chunks left out after them")
	f.IntVar(&limit, "limit", 0, "AudD's limit; its unit is disputed, so it does not lower the units shown")
	f.IntVar(&params.SkipFirstSeconds, "skip-first-seconds", 0, "seconds left out at the start")
	f.BoolVar(&params.UseTimecode, "use-timecode", false, "take offsets from the recording's timecode")
	f.Int64Var(&maxUnits, "max-units", 0, "the most one recording may cost, in units")
	return cmd
}
