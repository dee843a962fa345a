package worker

import (
	"context"

	"reprise/idempotency"
	"reprise/tasks"
)

// MaySend returns the error of the question whether a lost attempt of p sent anything.
func MaySend(ctx context.Context, ledger *idempotency.Ledger, p tasks.Payload) error {
	_, err := (&uploads{ledger: ledger}).maySent(ctx, &delivery{payload: p}, "lost")
	return err
}
