package idempotency

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
)

// Mark identifies the latest latch or adoption in a ledger. The sender stores it outside the database before it
// sends the first byte of an upload. If the ledger does not contain the stored mark, it was restored from a backup
// or is a different ledger. The sequence number alone is not enough, because a restored ledger soon reaches the
// same number. The zero Mark means that no mark is stored.
type Mark struct {
	Ledger string `json:"ledger"`
	Seq    int64  `json:"seq"` // rises with every latch: remember the largest
	Token  string `json:"token"`
}

// IsZero reports whether no mark is remembered.
func (m Mark) IsZero() bool { return m == Mark{} }

// ID returns the ledger's random id, which never changes.
func (l *Ledger) ID() string { return l.id }

// Highest returns the ledger's latest mark. Its Seq is 0 before the first latch.
func (l *Ledger) Highest(ctx context.Context) (m Mark, err error) {
	err = l.db.QueryRowContext(ctx, `SELECT ledger, seq, token FROM upload_ledger WHERE id = 1`).Scan(&m.Ledger, &m.Seq, &m.Token)
	return m, failed("read the ledger's latest mark", err)
}

// Check returns a *BehindError if the ledger lacks the remembered mark and was not adopted in its place.
func (l *Ledger) Check(ctx context.Context, remembered Mark) error {
	head, err := l.Highest(ctx)
	if err != nil {
		return err
	}
	return check(ctx, l.db, head, remembered)
}

func check(ctx context.Context, q querier, head, remembered Mark) error {
	if remembered.IsZero() || remembered == head || remembered.Ledger == head.Ledger && remembered.Seq == 0 {
		return nil
	}
	known, err := exists(ctx, q, `SELECT
		($1 = $4 AND EXISTS (SELECT 1 FROM upload WHERE seq = $2 AND attempt_id = $3)) OR
		($1 = $4 AND EXISTS (SELECT 1 FROM upload_adoption WHERE seq = $2 AND token = $3)) OR
		EXISTS (SELECT 1 FROM upload_adoption WHERE remembered_ledger = $1 AND remembered_seq = $2 AND remembered_token = $3)`,
		remembered.Ledger, remembered.Seq, remembered.Token, head.Ledger)
	if err == nil && !known {
		err = &BehindError{Remembered: remembered, Highest: head}
	}
	return err
}

// Adopt accepts this ledger in place of the remembered one, and returns the mark to remember now. The ledger's sequence
// continues above the remembered mark. A ledger that is not behind is not changed.
func (l *Ledger) Adopt(ctx context.Context, remembered Mark, act Action) (Mark, error) {
	if err := act.validate(); err != nil {
		return Mark{}, failed("adopt the upload ledger", err)
	}
	return write(ctx, l, "adopt the upload ledger", func(tx *txn) (Mark, error) {
		err := check(ctx, tx, tx.head, remembered)
		var behind *BehindError
		if !errors.As(err, &behind) {
			return tx.head, unchanged(err)
		}
		if err := tx.raise(ctx, max(tx.head.Seq, remembered.Seq)+1, "adoption-"+rand.Text()); err != nil {
			return tx.head, err
		}
		err = tx.exec(ctx, "record the adoption", `INSERT INTO upload_adoption
			(seq, token, remembered_ledger, remembered_seq, remembered_token) VALUES ($1, $2, $3, $4, $5)`,
			tx.head.Seq, tx.head.Token, remembered.Ledger, remembered.Seq, remembered.Token)
		if err != nil {
			return tx.head, err
		}
		what := fmt.Sprintf("adopt ledger %s at %d in place of %s at %d",
			behind.Highest.Ledger, behind.Highest.Seq, remembered.Ledger, remembered.Seq)
		return tx.head, tx.audit(ctx, act, what, Send{})
	})
}
