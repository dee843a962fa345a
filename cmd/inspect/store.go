package main

import (
	"context"

	"github.com/spf13/cobra"

	"reprise/internal/text"
	"reprise/ops"
)

func newStore(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Show which store the queue in Redis belongs to",
		Long: `Redis records which store its queue belongs to. A process with
another store, an empty store or an older copy is refused, because it would pay again for results it does not have.`,
		Example: `  inspect store
  inspect store adopt                 # after a restore: assign the queue to this store`,
		Args: cobra.NoArgs,
		RunE: a.run(needsRedis|needsStore|anyStore, func(ctx context.Context, s *session, _ []string) error {
			r, err := s.Stores.Report(ctx)
			return s.show(r, err, func() { s.printStore(r) })
		}),
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "adopt",
		Short: "Assign the queue in Redis to this store",
		Long: `Stop all workers first. Inputs whose results this store lacks are billed again when they are enqueued again; waiting tasks run
with this store.`,
		Example: `  inspect store adopt --store sqlite:/data/restored.db`,
		Args:    cobra.NoArgs,
		RunE: a.run(needsRedis|needsStore|anyStore, func(ctx context.Context, s *session, _ []string) error {
			r, err := s.Stores.Adopt(ctx)
			return s.show(r, err, func() {
				if r.Problem == "" {
					s.Line("nothing to adopt: the queue belongs to %s already", r.Store.Name)
					return
				}
				s.Line("adopted: the queue belongs to %s (id %s) and no longer to %s (id %s)",
					r.Store.Name, text.Short(r.Store.ID, 9), r.Remembered.Name, text.Short(r.Remembered.ID, 9))
			})
		}),
	})
	return cmd
}

func (v view) printStore(r ops.StoreReport) {
	v.Line("store       %s  id %s  mark %d", r.Store.Name, text.Short(r.Store.ID, 9), r.Store.Seq)
	if r.Remembered == nil {
		v.Line("in Redis    none yet: the first worker or enqueue command assigns this store")
		return
	}
	v.Line("in Redis    %s  id %s  mark %d", r.Remembered.Name, text.Short(r.Remembered.ID, 9), r.Remembered.Seq)
	if r.Problem != "" {
		v.Line("refused     %s", r.Problem)
	}
}
