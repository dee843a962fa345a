package idempotency

import (
	"context"
	"fmt"
	"time"
)

// Action is an operator's action, for the audit trail. All fields are required.
type Action struct {
	By, Why string
	At      time.Time
}

func (a Action) validate() error {
	if a.By == "" || a.Why == "" || a.At.IsZero() {
		return fmt.Errorf("who, why and when are required: %w", ErrInvalid)
	}
	return nil
}

// Audit is one entry of the audit trail: an operator's action, or a report that came too late to count.
type Audit struct {
	N          int64     `json:"-"` // rises with every entry
	At         time.Time `json:"at"`
	Who        string    `json:"who"`
	What       string    `json:"what"`
	Why        string    `json:"why"`
	Key        string    `json:"-"` // "" = the entry is about the whole ledger
	Generation int64     `json:"generation"`
}

// audit writes an entry about the key and generation of s.
func (t *txn) audit(ctx context.Context, act Action, what string, s Send) error {
	var n int64
	err := t.QueryRowContext(ctx, `UPDATE upload_ledger SET audits = audits + 1 WHERE id = 1 RETURNING audits`).Scan(&n)
	if err != nil {
		return failed("number the audit entry", err)
	}
	return t.exec(ctx, "write the audit entry",
		`INSERT INTO upload_audit (n, at, who, what, why, key, generation) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		n, act.At.UnixMilli(), act.By, what, act.Why, s.Key, s.Generation)
}

// auditOnce is audit, unless the same operator or attempt wrote the same entry before.
func (t *txn) auditOnce(ctx context.Context, act Action, what string, s Send) error {
	known, err := exists(ctx, t, `SELECT EXISTS (SELECT 1 FROM upload_audit
		WHERE key = $1 AND generation = $2 AND who = $3 AND what = $4)`, s.Key, s.Generation, act.By, what)
	if err != nil || known {
		return unchanged(err)
	}
	return t.audit(ctx, act, what, s)
}

// Trail returns the audit trail of a key, oldest first. The key "" has the entries about the whole ledger.
func (l *Ledger) Trail(ctx context.Context, key string) ([]Audit, error) {
	trail, err := all(ctx, l.db, func(row scanner) (a Audit, err error) {
		err = row.Scan(&a.N, millis{&a.At}, &a.Who, &a.What, &a.Why, &a.Key, &a.Generation)
		return a, err
	}, `SELECT n, at, who, what, why, key, generation FROM upload_audit WHERE key = $1 ORDER BY n`, key)
	return trail, failed("read the audit trail", err)
}
