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

// ErrClosed means that the store was closed before it could run the call.
var ErrClosed = errors.New("store is closed")

// ErrUnknownKey means that no task row has the key.
var ErrUnknownKey = errors.New("no task with this key")

// ErrInvalid means that the store refused a row whose fields are missing or contradict each other. This is a programming
// error; a retry fails again.
var ErrInvalid = errors.New("invalid row")

// errGaveUp marks a call whose deadline ended before the store replied. Its write may or may not be committed.
var errGaveUp = errors.New("store did not reply in time")

// IsUnavailable reports whether err means that the database cannot be read or written now, so that the same call may
// succeed later: it is busy, locked, read-only, damaged or closed, the disk is full or fails, or the caller's deadline
// ended first. It is false for nil, for a cancelled caller and for programming errors.
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

// sqliteCode returns the primary SQLite result code in err, 0 for an error without one.
func sqliteCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// failed wraps an error with the operation that it ended; nil stays nil. An exceeded deadline also wraps errGaveUp. Every
// error of a closed store also wraps ErrClosed, because database/sql has no exported error for it.
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
