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

// txn is a transaction that has locked the ledger.
type txn struct {
	*sql.Tx
	head Mark // the ledger's latest mark
}

// errUnchanged ends a transaction that has nothing to change. write rolls it back and returns no error.
var errUnchanged = errors.New("nothing to change")

// unchanged returns err, or errUnchanged if err is nil.
func unchanged(err error) error {
	if err != nil {
		return err
	}
	return errUnchanged
}

// write runs one change of the ledger in a transaction and returns the result of run. The transaction first updates the
// ledger's row. SQLite's write lock and PostgreSQL's row lock then put all changes one after another, so run may read
// before it writes.
func write[T any](ctx context.Context, l *Ledger, doing string, run func(tx *txn) (T, error)) (result T, err error) {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return result, fmt.Errorf("%s: begin: %w", doing, err)
	}
	t := &txn{Tx: tx}
	row := tx.QueryRowContext(ctx, `UPDATE upload_ledger SET seq = seq WHERE id = 1 RETURNING ledger, seq, token`)
	err = failed("lock the ledger", row.Scan(&t.head.Ledger, &t.head.Seq, &t.head.Token))
	var got T
	if err == nil {
		got, err = run(t)
	}
	if err == nil {
		err = failed("commit", tx.Commit())
	} else {
		err = rollBack(tx, err)
	}
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil { // database/sql rolled back, but its error does not name ctx
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	if err != nil {
		return result, failed(doing, err)
	}
	return got, nil
}

// rollBack rolls back and returns cause, or nil for errUnchanged. sql.ErrTxDone of the rollback is no error, because the
// transaction is over without a commit.
func rollBack(tx *sql.Tx, cause error) error {
	err := tx.Rollback()
	if errors.Is(err, sql.ErrTxDone) {
		err = nil
	}
	if errors.Is(cause, errUnchanged) {
		return err
	}
	return errors.Join(cause, err)
}

// exec runs a statement; doing describes it in the error.
func (t *txn) exec(ctx context.Context, doing, query string, args ...any) error {
	_, err := t.ExecContext(ctx, query, args...)
	return failed(doing, err)
}

// raise stores the sequence number and the token as the ledger's latest mark.
func (t *txn) raise(ctx context.Context, seq int64, token string) error {
	t.head.Seq, t.head.Token = seq, token
	return t.exec(ctx, "raise the sequence", `UPDATE upload_ledger SET seq = $1, token = $2 WHERE id = 1`, seq, token)
}

// querier is a pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// scanner is a row of a result.
type scanner interface{ Scan(dest ...any) error }

// all returns the scanned rows of a query.
func all[T any](ctx context.Context, q querier, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// exists returns the result of a SELECT EXISTS query.
func exists(ctx context.Context, q querier, query string, args ...any) (is bool, err error) {
	err = q.QueryRowContext(ctx, query, args...).Scan(&is)
	return is, failed("look into the upload ledger", err)
}

// found reports whether the scan of a single row found one. err is the error of the scan.
func found(doing string, err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, failed(doing, err)
}

// failed adds what was being done to an error; nil stays nil.
func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// millis scans milliseconds since the Unix epoch into a time. NULL is the zero time.
type millis struct{ *time.Time }

// Scan implements sql.Scanner.
func (m millis) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*m.Time = time.Time{}
	case int64:
		*m.Time = time.UnixMilli(v).UTC()
	default:
		return fmt.Errorf("read a time: unexpected %T", value)
	}
	return nil
}
