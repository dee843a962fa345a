package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3"
	sqlite3 "modernc.org/sqlite/lib"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// lockTimeout is how long Open waits while another process migrates the schema.
const lockTimeout = "60000" // milliseconds

// prepareFile returns the database file's absolute path. It creates a missing folder and a missing file. Only this
// user can read them, because payloads may contain signed URLs. It does not open an existing file, because closing it
// would release the POSIX locks that SQLite holds on it in this process.
func prepareFile(cfg Config) (string, error) {
	path, err := cfg.File()
	if err != nil {
		return "", err
	}
	file, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the working directory: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("create the folder of the database: %w", err)
	}
	created, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		err = created.Close()
	} else if errors.Is(err, fs.ErrExist) {
		info, statErr := os.Stat(file)
		if statErr == nil && info.IsDir() {
			return "", fmt.Errorf("%s is a folder, not a file", file)
		}
		return file, nil
	}
	if err != nil {
		return "", fmt.Errorf("create the database file: %w", err)
	}
	return file, nil
}

// migrateLocked runs migrate while it holds a lock, so that only one Open of a file migrates at a time, across all
// processes.
//
// The lock is SQLite's exclusive lock on a second, empty file beside the database. goose has no lock for SQLite, and a
// lock inside the database would block goose itself. The operating system releases the lock when the process ends. The
// lock also covers the switch to WAL, because SQLite does not wait for the database lock there.
func migrateLocked(ctx context.Context, db *sql.DB, file string) (err error) {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(file + "-migrate"), RawQuery: "_busy_timeout=" + lockTimeout}
	lock, err := sql.Open("sqlite", u.String())
	if err != nil {
		return fmt.Errorf("open the migration lock: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	conn, err := lock.Conn(ctx)
	if err != nil {
		return explainOpen("take the migration lock", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err := conn.ExecContext(ctx, "BEGIN EXCLUSIVE"); err != nil {
		return explainOpen("take the migration lock", err)
	}
	return migrate(ctx, db) // closing the connection releases the lock
}

// migrate updates the schema to this build's version. It fails if the schema is newer.
func migrate(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return fmt.Errorf("read the embedded migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files,
		goose.WithLogger(goose.NopLogger()), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read the embedded migrations: %w", err)
	}
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return explainOpen("read the schema version", err)
	}
	if current > target {
		return fmt.Errorf("the schema version %d is newer than this build's version %d: use a newer build", current, target)
	}
	if current == target {
		return nil
	}
	if _, err := provider.Up(ctx); err != nil {
		return explainOpen(fmt.Sprintf("migrate the schema from version %d to %d", current, target), err)
	}
	return nil
}

// explainOpen wraps a SQLite error with the reason why the database cannot be opened.
func explainOpen(doing string, err error) error {
	switch sqliteCode(err) {
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("the file is not a SQLite database: %w", err)
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return fmt.Errorf("the file or its folder cannot be written: %w", err)
	case sqlite3.SQLITE_BUSY:
		return fmt.Errorf("another process has locked the database: %s: %w", doing, err)
	case sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("the database is damaged: %w", err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
