package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Identity tells stores and their copies apart. A mark is a random token that a
// store gets while it is written to: a copy lacks the marks that came later.
type Identity struct {
	ID    string `json:"id"`   // random, made with the store; a copy has the same
	Seq   int64  `json:"mark"` // number of the mark; 0 = none yet
	Token string `json:"-"`    // of the mark
	Name  string `json:"name"` // file and host, for messages
}

// identify gives a new store its id. Of several openers the first wins.
func identify(ctx context.Context, s *Store) error {
	_, err := s.db.ExecContext(ctx, s.dialect.rebind(`INSERT INTO identity (id, store) VALUES (1, ?) ON CONFLICT (id) DO NOTHING`), rand.Text())
	if err != nil {
		return fmt.Errorf("give the store its id: %w", err)
	}
	return nil
}

// Marks are the marks of a store. Safe for concurrent use.
type Marks struct{ store *Store }

// MarksOf returns the marks of a store.
func MarksOf(s *Store) Marks { return Marks{s} }

// Identity reads which store this is and its latest mark.
func (m Marks) Identity(ctx context.Context) (Identity, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	found := Identity{Name: m.store.file + " on " + host}
	err = m.store.db.QueryRowContext(ctx, `SELECT store, COALESCE(seq, 0), COALESCE(token, '') FROM identity
		LEFT JOIN mark ON mark.seq = (SELECT MAX(seq) FROM mark) WHERE identity.id = 1`).Scan(&found.ID, &found.Seq, &found.Token)
	return found, m.store.failed("read the store's identity", err)
}

// Has reports whether the store has the mark of an identity.
func (m Marks) Has(ctx context.Context, of Identity) (has bool, err error) {
	err = m.store.db.QueryRowContext(ctx, m.store.dialect.rebind(`SELECT EXISTS (SELECT 1 FROM identity WHERE store = ?) AND
		(? = 0 OR EXISTS (SELECT 1 FROM mark WHERE seq = ? AND token = ?))`), of.ID, of.Seq, of.Seq, of.Token).Scan(&has)
	return has, m.store.failed("read the store's marks", err)
}

// marksKept is how many marks a store keeps. Only the one that Redis remembers is
// needed, which is one of the last.
const marksKept = 1000

// Set sets a new mark if this process committed anything since its last one, or
// if anew is set.
func (m Marks) Set(ctx context.Context, anew bool) error {
	if m.store.marked.Swap(true) && !anew { // what is committed from here on needs the next mark
		return nil
	}
	err := m.store.write(ctx, "mark the store", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, m.store.dialect.rebind(`INSERT INTO mark (seq, token) SELECT COALESCE(MAX(seq), 0) + 1, ? FROM mark`), rand.Text())
		if err == nil {
			_, err = tx.ExecContext(ctx, m.store.dialect.rebind(`DELETE FROM mark WHERE seq <= (SELECT MAX(seq) FROM mark) - ?`), marksKept)
		}
		return err
	})
	if err != nil {
		m.store.marked.Store(false)
	}
	return err
}

// Backup writes a consistent copy of the database to a new file, also while
// other processes write. It fails if the file exists.
func (s *Store) Backup(ctx context.Context, file string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return fmt.Errorf("back up the store: find the working directory: %w", err)
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("back up the store: %s exists already; choose a new name", file)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // VACUUM INTO takes an empty file
	if err != nil {
		return fmt.Errorf("back up the store: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("back up the store: %w", err)
	}
	if _, err := s.db.ExecContext(ctx, `VACUUM INTO ?`, file); err != nil {
		return errors.Join(s.failed("back up the store", err), os.Remove(file))
	}
	return syncFile(file)
}

func syncFile(name string) (err error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("sync the backup: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync the backup: %w", err)
	}
	return nil
}
