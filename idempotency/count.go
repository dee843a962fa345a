package idempotency

import (
	"context"
	"fmt"
)

// Count counts the keys that a filter chooses by the state of their current generation. Its After and Limit do not matter.
func (l *Ledger) Count(ctx context.Context, f Filter) (map[State]int64, error) {
	f.After = ""
	where, args := f.conditions()
	//nolint:gosec // where has constants only, the values are arguments
	query := `SELECT COALESCE(u.state, 'free'), COUNT(*) FROM upload_key k
		LEFT JOIN upload u ON u.key = k.key AND u.generation = k.generation` + where + ` GROUP BY 1`
	rows, err := l.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("count uploads: %w", err)
	}
	defer rows.Close()
	counts := map[State]int64{}
	for rows.Next() {
		var state State
		var n int64
		if err := rows.Scan(&state, &n); err != nil {
			return nil, fmt.Errorf("count uploads: %w", err)
		}
		counts[state] = n
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("count uploads: %w", err)
	}
	return counts, nil
}
