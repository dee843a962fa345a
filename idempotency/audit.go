package idempotency

import (
	"context"
	"fmt"
	"time"
)

// Audit is one entry of the audit trail: an operator's action, or a report that
// came too late to count.
type Audit struct {
	N          int64 // rises
	At         time.Time
	Who        string
	What       string
	Why        string
	Key        string // "" when it is about the whole ledger
	Generation int64
}

func (t *txn) audit(ctx context.Context, act Action, what, key string, generation int64) error {
	var n int64
	err := t.QueryRowContext(ctx, `UPDATE upload_ledger SET audits = audits + 1 WHERE id = 1 RETURNING audits`).Scan(&n)
	if err != nil {
		return fmt.Errorf("number the audit: %w", err)
	}
	_, err = t.ExecContext(ctx, `INSERT INTO upload_audit (n, at, who, what, why, key, generation) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		n, act.At.UnixMilli(), act.By, what, act.Why, key, generation)
	if err != nil {
		return fmt.Errorf("write the audit: %w", err)
	}
	return nil
}

// auditOnce writes the entry unless the same operator or attempt wrote it before.
func (t *txn) auditOnce(ctx context.Context, act Action, what string, s Send) error {
	var known bool
	err := t.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM upload_audit
		WHERE key = $1 AND generation = $2 AND who = $3 AND what = $4)`, s.Key, s.Generation, act.By, what).Scan(&known)
	if err != nil {
		return fmt.Errorf("look for the audit: %w", err)
	}
	if known {
		return errUnchanged
	}
	return t.audit(ctx, act, what, s.Key, s.Generation)
}

// Trail returns the audit trail of a key, oldest first; "" is the whole ledger's.
func (l *Ledger) Trail(ctx context.Context, key string) ([]Audit, error) {
	rows, err := l.db.QueryContext(ctx, `SELECT n, at, who, what, why, key, generation FROM upload_audit WHERE key = $1 ORDER BY n`, key)
	if err != nil {
		return nil, fmt.Errorf("read the audit trail: %w", err)
	}
	defer rows.Close()
	var trail []Audit
	for rows.Next() {
		var a Audit
		var at int64
		if err := rows.Scan(&a.N, &at, &a.Who, &a.What, &a.Why, &a.Key, &a.Generation); err != nil {
			return nil, fmt.Errorf("read the audit trail: %w", err)
		}
		a.At = instant(at)
		trail = append(trail, a)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the audit trail: %w", err)
	}
	return trail, nil
}
