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

// Identity identifies a store and its latest mark. A mark is a random token that a store gets while it is being
// written. An older copy of the store lacks the later marks.
type Identity struct {
	ID    string `json:"id"`   // random, created with the store; copies have the same id
	Seq   int64  `json:"mark"` // mark number; 0 = no mark yet
	Token string `json:"-"`    // the mark's random token
	Name  string `json:"name"` // file and host, for messages
}

// identify gives a new store its id. If several processes open it at once, the first id is kept.
func identify(ctx context.Context, s *Store) error {
	_, err := s.db.ExecContext(ctx, s.dialect.rebind(`INSERT INTO identity (id, store) VALUES (1, ?) ON CONFLICT (id) DO NOTHING`), rand.Text())
	if err != nil {
		return fmt.Errorf("create the store id: %w", err)
	}
	return nil
}

// Marks reads and sets the marks of a store. It is safe for concurrent use.
type Marks struct{ store *Store }

// MarksOf returns the marks of s.
func MarksOf(s *Store) Marks { return Marks{s} }

// Identity returns the store's id, latest mark and name.
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

// Has reports whether the store has the id and the mark of an identity.
func (m Marks) Has(ctx context.Context, of Identity) (has bool, err error) {
	err = m.store.db.QueryRowContext(ctx, m.store.dialect.rebind(`SELECT EXISTS (SELECT 1 FROM identity WHERE store = ?) AND
		(? = 0 OR EXISTS (SELECT 1 FROM mark WHERE seq = ? AND token = ?))`), of.ID, of.Seq, of.Seq, of.Token).Scan(&has)
	return has, m.store.failed("read the store's marks", err)
}

// marksKept is how many marks a store keeps. Only the mark that Redis stores is needed, and it is always a recent
// one.
const marksKept = 1000

// Set adds a mark if this process has committed anything since its last mark, or if anew is set.
func (m Marks) Set(ctx context.Context, anew bool) error {
	if m.store.marked.Swap(true) && !anew { // later commits need a new mark
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

// Backup writes a consistent copy of the database to a new file. Other processes may write meanwhile. Backup fails if
// the file exists.
func (s *Store) Backup(ctx context.Context, file string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return fmt.Errorf("back up the store: find the working directory: %w", err)
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("back up the store: %s already exists; choose a new name", file)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // VACUUM INTO accepts an empty file
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
