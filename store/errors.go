package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrClosed means the store was closed before the call could be made.
var ErrClosed = errors.New("store is closed")

// ErrUnknownKey means no task row has the key.
var ErrUnknownKey = errors.New("no task with this key")

// ErrInvalid means a row was refused before it reached the database, because
// it contradicts itself: a programming error that must not be retried.
var ErrInvalid = errors.New("invalid row")

// errGaveUp marks a call whose context ended before the store answered: its write
// may or may not be committed.
var errGaveUp = errors.New("store did not answer in time")

// IsUnavailable reports whether err means that the store cannot be read or
// written now (busy, locked, disk full, read-only, I/O error, damaged, closed,
// or silent until the caller's deadline), so that the same call may succeed
// later. It is false for nil, for a cancelled caller and for programming errors.
func IsUnavailable(err error) bool {
	if errors.Is(err, ErrClosed) || errors.Is(err, errGaveUp) ||
		errors.Is(err, sql.ErrConnDone) || errors.Is(err, driver.ErrBadConn) {
		return true
	}
	switch code := sqliteCode(err); code {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR,
		sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB,
		sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOLFS:
		return true
	default:
		return false
	}
}

// sqliteCode is the primary result code in err, 0 if there is none.
func sqliteCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// failed wraps the error of a statement or transaction with the operation. An
// exceeded deadline counts as unavailable; sql's own "database
// is closed", which has no exported value, becomes ErrClosed.
func (s *Store) failed(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errGaveUp):
		return fmt.Errorf("%s: %w: %w", doing, errGaveUp, err)
	case s.closed() && !errors.Is(err, ErrClosed):
		return fmt.Errorf("%s: %w: %w", doing, ErrClosed, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
