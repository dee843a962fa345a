package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"reprise/internal/settings"
	"reprise/store"
)

func (a app) backupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup-store FILE",
		Short: "Write a consistent copy of the store to a new file, while workers run",
		Long: `Copying a running store's file with cp omits the data in its write-ahead log. FILE must not exist.

To restore: stop all workers, put the copy where the store URL points to (and remove the files NAME-wal and NAME-shm beside the
old one), and run "inspect store adopt". Results stored after the backup are not in the copy and may be billed again; uploads are blocked
until "inspect uploads adopt".`,
		Example: `  worker backup-store /backup/reprise-2026-12-01.db
  REPRISE_STORE_URL=sqlite:/data/reprise.db worker backup-store copy.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			c, err := a.load(cmd, defaults())
			if err != nil {
				return err
			}
			file, err := store.Config{URL: c.Store.URL}.File()
			if err != nil {
				return c.loaded.WithOrigin(err)
			}
			if _, err := os.Stat(file); err != nil { // opening would make an empty one
				return fmt.Errorf("no store at %s: set store.url (%s or --store) to the one the workers use", file, settings.EnvName("store.url"))
			}
			var open closers
			defer func() { err = open.close(err) }()
			records, err := openStore(cmd.Context(), c.Store.URL, &open)
			if err != nil {
				return err
			}
			if err := records.Backup(cmd.Context(), args[0]); err != nil {
				return err
			}
			own, err := store.MarksOf(records).Identity(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "copied %s to %s (store id %.8s)\n", own.Name, args[0], own.ID)
			return nil
		},
	}
	addFlags(cmd.Flags(), defaults())
	return cmd
}
