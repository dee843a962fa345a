// Command inspect shows an operator which tasks wait and why, what is paused or halted, and what calls cost, and it pauses,
// resumes and replays. It has only flags and tables; the logic is in package ops.
package main

import (
	"github.com/spf13/cobra"

	"reprise/internal/cli"
)

var program = cli.Program{
	New: newRoot,
	ExitCodes: []cli.ExitCode{
		{Code: cli.OK, Meaning: "done"},
		{Code: cli.Failed, Meaning: "Redis or the store cannot be reached, or the request was refused"},
		{Code: cli.Usage, Meaning: "wrong usage or settings; nothing was done"},
		{Code: cli.Partial, Meaning: "some of it failed"},
	},
	Failed:      cli.Failed,
	Interrupted: cli.Failed,
}

func main() { program.Main() }

func newRoot(p *cli.Process) *cobra.Command {
	root := &cobra.Command{
		Use:   "inspect",
		Short: "Show queues, accounts, tasks and costs, and act on them",
		Long:  "Only replay, resume SOURCE/PATH and uploads resolve --as retry cost units.",
		Example: `  inspect queues                              # what waits, what is paused and why
  inspect why clips/a.mp3                     # what this task waits for
  inspect limits set main/recognize.concurrency=20`,
	}
	a := newApp(p, root.PersistentFlags())
	root.AddCommand(newWhy(a), newQueues(a), newPause(a), newResume(a), newHalts(a), newHalt(a), newSources(a), newLimits(a), newGroup(a),
		newTasks(a), newArchive(a), newReplay(a), newResults(a), newCosts(a), newUploads(a), newStore(a))
	return root
}
