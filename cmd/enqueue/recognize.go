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
		Use:   "recognize INPUT… [flags]",
		Short: "Queue clips; costs units: 1 a clip (--dry-run costs nothing)",
		Long: `An INPUT is a file, a folder (taken with everything in it), a pattern in quotes, an http or https URL,
or - for a list on standard input. A file has up to 10 MiB; only its first 12 seconds count.
What was queued or recognised before is not queued again and costs nothing.`,
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
	cmd.Flags().StringVar(&params.Market, "market", "", "country of that metadata, such as de (default us)")
	_ = cmd.RegisterFlagCompletionFunc("return", // fails only for a flag that is not there
		cobra.FixedCompletions(tasks.Providers, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
