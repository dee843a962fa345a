package idempotency

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Mark identifies one latch or adoption of one ledger. The sender stores the
// latest mark outside the database before the first byte; a ledger that lacks a
// remembered mark was restored from a backup or is another ledger. The sequence
// alone is not enough, because a restored ledger that is used again soon reaches
// the same number. The zero Mark means that nothing is remembered.
type Mark struct {
	Ledger string `json:"ledger"`
	Seq    int64  `json:"seq"` // rises with every latch: remember the largest
	Token  string `json:"token"`
}

// IsZero reports whether nothing is remembered.
func (m Mark) IsZero() bool { return m == Mark{} }

// ID is the ledger's random id, made once.
func (l *Ledger) ID() string { return l.id }

// Highest is the ledger's latest mark, its Seq 0 before the first latch.
func (l *Ledger) Highest(ctx context.Context) (Mark, error) {
	var m Mark
	err := l.db.QueryRowContext(ctx, `SELECT ledger, seq, token FROM upload_ledger WHERE id = 1`).Scan(&m.Ledger, &m.Seq, &m.Token)
	if err != nil {
		return Mark{}, fmt.Errorf("read the ledger's latest mark: %w", err)
	}
	return m, nil
}

// Check returns a *BehindError if the ledger lacks the remembered mark and was not
// adopted since.
func (l *Ledger) Check(ctx context.Context, remembered Mark) error {
	head, err := l.Highest(ctx)
	if err != nil {
		return err
	}
	return check(ctx, l.db, head, remembered)
}

// querier is a pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func check(ctx context.Context, q querier, head, remembered Mark) error {
	if remembered.IsZero() || remembered == head || remembered.Ledger == head.Ledger && remembered.Seq == 0 {
		return nil
	}
	var known bool
	err := q.QueryRowContext(ctx, `SELECT
		($1 = $4 AND EXISTS (SELECT 1 FROM upload WHERE seq = $2 AND attempt_id = $3)) OR
		($1 = $4 AND EXISTS (SELECT 1 FROM upload_adoption WHERE seq = $2 AND token = $3)) OR
		EXISTS (SELECT 1 FROM upload_adoption WHERE remembered_ledger = $1 AND remembered_seq = $2 AND remembered_token = $3)`,
		remembered.Ledger, remembered.Seq, remembered.Token, head.Ledger).Scan(&known)
	if err != nil {
		return fmt.Errorf("look for the remembered mark: %w", err)
	}
	if !known {
		return &BehindError{Remembered: remembered, Highest: head}
	}
	return nil
}

// Action describes an operator's action for the audit trail. All fields are
// required.
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

// Adopt accepts this ledger in place of the remembered one. Its sequence jumps
// above the remembered mark; the mark it returns is the one to remember now.
// Adopting a ledger that is not behind changes
// nothing.
func (l *Ledger) Adopt(ctx context.Context, remembered Mark, act Action) (Mark, error) {
	if err := act.validate(); err != nil {
		return Mark{}, fmt.Errorf("adopt the upload ledger: %w", err)
	}
	var adopted Mark
	err := l.write(ctx, "adopt the upload ledger", func(ctx context.Context, tx *txn) error {
		adopted = tx.head
		err := check(ctx, tx, tx.head, remembered)
		var behind *BehindError
		if !errors.As(err, &behind) {
			return unchanged(err)
		}
		seq, token := max(tx.head.Seq, remembered.Seq)+1, "adoption-"+rand.Text()
		if err := tx.raise(ctx, seq, token); err != nil {
			return err
		}
		adopted = tx.head
		_, err = tx.ExecContext(ctx, `INSERT INTO upload_adoption
			(seq, token, remembered_ledger, remembered_seq, remembered_token) VALUES ($1, $2, $3, $4, $5)`,
			seq, token, remembered.Ledger, remembered.Seq, remembered.Token)
		if err != nil {
			return fmt.Errorf("record the adoption: %w", err)
		}
		what := fmt.Sprintf("adopt ledger %s at %d in place of %s at %d", behind.Highest.Ledger, behind.Highest.Seq, remembered.Ledger, remembered.Seq)
		return tx.audit(ctx, act, what, "", 0)
	})
	return adopted, err
}
