package idempotency

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Config holds the ledger's times.
type Config struct {
	// FirstByte is the longest time from sent_at to the first byte of the body. Default 5 s.
	FirstByte time.Duration
	// Margin sets when a send without a conclusion becomes uncertain: at sent_at + timeout + Margin. Default 30 s; more
	// than FirstByte.
	Margin time.Duration
	// RetryWait sets when an operator may send again: at sent_at + timeout + RetryWait. Default 1 min; at least Margin.
	RetryWait time.Duration
}

// DefaultConfig returns 5 s, 30 s and 1 min.
func DefaultConfig() Config {
	return Config{FirstByte: 5 * time.Second, Margin: 30 * time.Second, RetryWait: time.Minute}
}

// Validate reports every invalid field by name.
func (c Config) Validate() error {
	var errs []error
	if c.FirstByte <= 0 {
		errs = append(errs, fmt.Errorf("upload first_byte %s: must be more than 0", c.FirstByte))
	}
	if c.Margin <= c.FirstByte {
		errs = append(errs, fmt.Errorf("upload margin %s: must be more than first_byte %s", c.Margin, c.FirstByte))
	}
	if c.RetryWait < c.Margin {
		errs = append(errs, fmt.Errorf("upload retry_wait %s: must be at least margin %s", c.RetryWait, c.Margin))
	}
	return errors.Join(errs...)
}

// Ledger is the upload ledger in a database. It is safe for concurrent use, also by several processes on one database.
// Callers pass every time as an argument. Errors of the database are wrapped.
type Ledger struct {
	db  *sql.DB
	cfg Config
	id  string
}

// New opens the ledger in db, whose tables the store's migrations create. It gives a new ledger a random id. It does not
// close db.
func New(ctx context.Context, db *sql.DB, cfg Config) (*Ledger, error) {
	if err := cfg.Validate(); err != nil {
		return nil, failed("open the upload ledger", err)
	}
	l := &Ledger{db: db, cfg: cfg}
	head, err := l.Highest(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = db.ExecContext(ctx, `INSERT INTO upload_ledger (id, ledger, seq, token, audits) VALUES (1, $1, 0, '', 0)
			ON CONFLICT (id) DO NOTHING`, rand.Text())
		if err == nil { // another process may have inserted the row first
			head, err = l.Highest(ctx)
		}
	}
	if err != nil {
		return nil, failed("open the upload ledger", err)
	}
	l.id = head.Ledger
	return l, nil
}
