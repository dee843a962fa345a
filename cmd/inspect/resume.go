package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
)

func newResume(a *app) *cobra.Command {
	var only, dryRun bool
	cmd := &cobra.Command{
		Use:   "resume QUEUE|PATH|SOURCE/PATH…",
		Short: "Take a person's pause away, or probe a halted source (a probe costs up to one call's units)",
		Long: `QUEUE or PATH: takes a person's pause away. Automatic reasons stay: they end with their cause.
SOURCE/PATH (* for all): sets a halted or broken source half-open. A worker probes it with the first waiting task; if
that succeeds it opens, and workers replay, paced, what was archived for the account reason. A throttle goes on.`,
		Example: `  inspect resume recognize
  inspect resume main/recognize --dry-run      # costs nothing
  inspect resume main/recognize`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var sources, queues []string
			for _, arg := range args {
				if strings.Contains(arg, "/") {
					sources = append(sources, arg)
				} else {
					queues = append(queues, arg)
				}
			}
			if len(sources) > 0 && len(queues) > 0 {
				return usage("resume queues and sources one after the other")
			}
			if len(queues) > 0 {
				if dryRun {
					return usage("--dry-run is for SOURCE/PATH: resuming a queue costs nothing")
				}
				return a.with(cmd.Context(), needsRedis, func(ctx context.Context, s *session) error {
					return s.resumeQueues(ctx, queues, only)
				})
			}
			return a.resumeSources(cmd.Context(), sources, dryRun)
		},
	}
	cmd.Flags().BoolVar(&only, "only", false, "only the path's own queue, not those of its groups")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what resuming a source would start; costs nothing")
	return cmd
}
