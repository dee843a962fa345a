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
	// FirstByte is the longest that may pass between the instant recorded as
	// sent_at and the first byte of the body. Default 5 s.
	FirstByte time.Duration
	// Margin is how long after sent_at + timeout a send without a conclusion
	// becomes uncertain. Default 30 s; more than FirstByte.
	Margin time.Duration
	// RetryWait is how long after sent_at + timeout an operator may send again.
	// Default 1 min; not less than Margin.
	RetryWait time.Duration
}

// DefaultConfig is 5 s, 30 s and 1 min.
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

// Ledger is the upload ledger in a database. All methods are safe for
// concurrent use, also by other processes on the same database. It takes every
// time as an argument. Errors of the database are wrapped, never replaced.
type Ledger struct {
	db  *sql.DB
	cfg Config
	id  string
}

// New opens the ledger in db, whose tables the migrations of the store create. It
// gives a new ledger a random id. The caller closes db.
func New(ctx context.Context, db *sql.DB, cfg Config) (*Ledger, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open the upload ledger: %w", err)
	}
	l := &Ledger{db: db, cfg: cfg}
	err := db.QueryRowContext(ctx, `SELECT ledger FROM upload_ledger WHERE id = 1`).Scan(&l.id)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = db.ExecContext(ctx, `INSERT INTO upload_ledger (id, ledger, seq, token, audits) VALUES (1, $1, 0, '', 0)
			ON CONFLICT (id) DO NOTHING`, rand.Text())
		if err == nil { // another process may have inserted the row first
			err = db.QueryRowContext(ctx, `SELECT ledger FROM upload_ledger WHERE id = 1`).Scan(&l.id)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the upload ledger: %w", err)
	}
	return l, nil
}

// txn is a transaction that holds the ledger's row, and the mark in that row.
type txn struct {
	*sql.Tx
	head Mark
}

// errUnchanged rolls a transaction back without an error, because it has nothing
// to change.
var errUnchanged = errors.New("nothing to change")

// unchanged ends a transaction that changed nothing with err, nil included.
func unchanged(err error) error {
	if err != nil {
		return err
	}
	return errUnchanged
}

// write runs one change of the ledger. It begins by updating the ledger's row:
// SQLite's write lock and PostgreSQL's row lock alike then put all changes of
// the ledger one after another, so run may read before it writes. run must not
// keep results of an attempt that failed.
func (l *Ledger) write(ctx context.Context, doing string, run func(ctx context.Context, tx *txn) error) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s: begin: %w", doing, err)
	}
	t := &txn{Tx: tx}
	row := tx.QueryRowContext(ctx, `UPDATE upload_ledger SET seq = seq WHERE id = 1 RETURNING ledger, seq, token`)
	if err = row.Scan(&t.head.Ledger, &t.head.Seq, &t.head.Token); err != nil {
		err = fmt.Errorf("lock the ledger: %w", err)
	} else {
		err = run(ctx, t)
	}
	if err != nil {
		return giveUp(doing, tx, overtaken(ctx, err))
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%s: commit: %w", doing, overtaken(ctx, err))
	}
	return nil
}

// overtaken adds the context's error if database/sql rolled the transaction back
// because the context ended; its own error does not say so.
func overtaken(ctx context.Context, err error) error {
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}

// giveUp rolls back. If the rollback fails, the transaction is already over; an
// uncommitted one never becomes visible.
func giveUp(doing string, tx *sql.Tx, cause error) error {
	err := tx.Rollback()
	if errors.Is(err, sql.ErrTxDone) {
		err = nil
	}
	if !errors.Is(cause, errUnchanged) {
		err = errors.Join(cause, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// raise stores the sequence number as the ledger's latest mark.
func (t *txn) raise(ctx context.Context, seq int64, token string) error {
	t.head.Seq, t.head.Token = seq, token
	_, err := t.ExecContext(ctx, `UPDATE upload_ledger SET seq = $1, token = $2 WHERE id = 1`, seq, token)
	if err != nil {
		return fmt.Errorf("raise the sequence: %w", err)
	}
	return nil
}
