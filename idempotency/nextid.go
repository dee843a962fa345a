package idempotency

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
)

// NextID allots n audio_ids in a row of a source and returns the first. They
// begin at 1, lie above every id the ledger knows of the source, and are never
// allotted again, whether they are used or not.
func (l *Ledger) NextID(ctx context.Context, source string, n int64) (first int64, err error) {
	if source == "" || n < 1 {
		return 0, fmt.Errorf("allot audio_ids: a source and 1 or more are required: %w", ErrInvalid)
	}
	err = l.write(ctx, "allot audio_ids", func(ctx context.Context, tx *txn) error {
		var known sql.NullInt64
		err := tx.QueryRowContext(ctx, `SELECT MAX(audio_id) FROM upload_key WHERE source = $1`, source).Scan(&known)
		if err != nil {
			return fmt.Errorf("read the highest audio_id: %w", err)
		}
		err = tx.QueryRowContext(ctx, `SELECT next_id FROM upload_counter WHERE source = $1`, source).Scan(&first)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("read the next audio_id: %w", err)
		}
		if known.Int64 > math.MaxInt64-n-1 || first > math.MaxInt64-n-1 {
			return fmt.Errorf("source %s has used its highest audio_id: allot by hand: %w", source, ErrInvalid)
		}
		first = max(first, known.Int64+1, 1)
		_, err = tx.ExecContext(ctx, `INSERT INTO upload_counter (source, next_id) VALUES ($1, $2)
			ON CONFLICT (source) DO UPDATE SET next_id = excluded.next_id`, source, first+n)
		if err != nil {
			return fmt.Errorf("write the next audio_id: %w", err)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return first, nil
}
