package main

import (
	"strings"

	"github.com/spf13/cobra"

	"reprise/intake"
	"reprise/tasks"
)

func newRecognize(a *app) *cobra.Command {
	var params tasks.Params
	cmd := &cobra.Command{
		Use:   "recognize INPUT…",
		Short: "Queue clips (costs units: 1 per clip)",
		Long: `An INPUT is a file, a folder (including its subfolders), a quoted glob pattern, an http or https URL,
or - for a list on standard input. A file may be up to 10 MiB; AudD analyses its first 12 seconds.
Inputs that are already queued or done are not queued again.`,
		Example: `  enqueue recognize clip.mp3 --wait
  enqueue recognize clips/ 'more/*.wav' --return spotify,apple_music
  enqueue recognize archive/ --group archive --dry-run
  enqueue recognize https://example.com/clip.mp3 --dry-run --price-per-1000 5`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.submit(cmd.Context(), intake.Request{Path: tasks.Recognize, Params: params, Group: a.group, Force: a.force}, args)
		},
	}
	cmd.Flags().StringSliceVar(&params.Return, "return", nil, "metadata to add: "+strings.Join(tasks.Providers, ", "))
	cmd.Flags().StringVar(&params.Market, "market", "", "country for the --return metadata, such as de (default us)")
	_ = cmd.RegisterFlagCompletionFunc("return", // fails only for a flag that does not exist
		cobra.FixedCompletions(tasks.Providers, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
