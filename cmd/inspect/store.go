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
		Long: `Redis remembers the store of its queue. A process with another store, an empty one or an older copy is refused, because work
that is paid for in the right store would be paid again.`,
		Example: `  inspect store
  inspect store adopt                 # after a restore: let Redis belong to this store`,
		Args: cobra.NoArgs,
		RunE: a.run(needsRedis|needsStore|anyStore, func(ctx context.Context, s *session, _ []string) error {
			r, err := s.Stores.Report(ctx)
			return s.show(r, err, func() { s.printStore(r) })
		}),
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "adopt",
		Short: "Let the queue in Redis belong to this store from now on",
		Long: `Stop all workers first. What this store lacks may be paid again when it is enqueued again; tasks that wait in the queue run
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
		v.Line("in Redis    none yet: the first worker or enqueue makes it this one")
		return
	}
	v.Line("in Redis    %s  id %s  mark %d", r.Remembered.Name, text.Short(r.Remembered.ID, 9), r.Remembered.Seq)
	if r.Problem != "" {
		v.Line("refused     %s", r.Problem)
	}
}
