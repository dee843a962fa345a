// Command enqueue puts audio into the queue. It expands files, folders, globs and URLs, checks them, shows their cost,
// and queues the new ones.
package main

import (
	"github.com/spf13/cobra"

	"reprise/internal/cli"
)

func main() { program.Main() }

var program = cli.Program{
	New:    func(p *cli.Process) *cobra.Command { return newRoot(&app{Process: p, Printer: p.Printer()}) },
	Failed: cli.None, Interrupted: 130,
	ExitCodes: []cli.ExitCode{
		{Code: cli.OK, Meaning: "every input is queued or already done; with --wait, every input is done"},
		{Code: cli.Failed, Meaning: "the output could not be written"},
		{Code: cli.Usage, Meaning: "wrong usage or settings; nothing was queued"},
		{Code: cli.Partial, Meaning: "some inputs failed, or it was interrupted after some were queued"},
		{Code: cli.None, Meaning: "no input could be queued; with --wait, no input is done"},
	},
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "enqueue",
		Short: "Queue audio for recognition",
		Example: `  enqueue recognize clips/ --dry-run          # show the number of units and the price
  enqueue recognize clips/*.mp3 --wait        # queue and print the results
  find . -name '*.wav' | enqueue recognize -  # read a list from standard input`,
	}
	a.addFlags(root.PersistentFlags())
	root.AddCommand(newRecognize(a), newEnterprise(a), newUpload(a))
	return root
}
