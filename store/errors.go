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

// ErrClosed means that the store was closed before it could run the operation.
var ErrClosed = errors.New("store is closed")

// ErrUnknownKey means that the key has no task row.
var ErrUnknownKey = errors.New("no task with this key")

// ErrInvalid means that a row's fields are missing or contradict each other. This is a programming error; a retry
// fails again.
var ErrInvalid = errors.New("invalid row")

// errGaveUp means that the caller's deadline ended before the store replied. The write may or may not be committed.
var errGaveUp = errors.New("store did not reply in time")

// IsUnavailable reports whether the database cannot be read or written now, so the same call may succeed later. It is
// true if the database is busy, locked, read-only, damaged or closed, if the disk is full or fails, and if the
// caller's deadline ended first. It is false for nil, for a cancelled caller and for programming errors.
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

// sqliteCode returns err's primary SQLite result code, or 0 if err has none.
func sqliteCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// failed wraps err with the name of the failed operation. It returns nil for nil. An exceeded deadline also wraps
// errGaveUp. Every error of a closed store also wraps ErrClosed, because database/sql exports no error for a closed
// database.
func (s *Store) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w: %w", doing, errGaveUp, err)
	}
	select {
	case <-s.closing:
		if !errors.Is(err, ErrClosed) {
			return fmt.Errorf("%s: %w: %w", doing, ErrClosed, err)
		}
	default:
	}
	return fmt.Errorf("%s: %w", doing, err)
}
