package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	_ "modernc.org/sqlite" // registers the "sqlite" driver
)

// Store is an open database. All methods are safe for concurrent use, also
// while other processes use the same file.
type Store struct {
	db       *sql.DB
	dialect  dialect
	stmts    statements
	requests chan *request
	closing  chan struct{}
	stopped  chan struct{} // closed when the writer has ended
	once     sync.Once
	closeErr error
}

// Open opens or creates the database and migrates its schema to this build's
// version. Several processes may open one file concurrently. It fails for an
// invalid setting, a file that cannot be written or is not a database, and a
// schema newer than this build. The caller closes the store.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	file, err := prepareFile(cfg)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	db, err := sql.Open("sqlite", cfg.dsn(file))
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", file, err)
	}
	db.SetMaxOpenConns(cfg.MaxConns)
	db.SetMaxIdleConns(cfg.MaxConns) // statements are prepared once per connection
	s := &Store{
		db: db, dialect: sqliteDialect,
		requests: make(chan *request), closing: make(chan struct{}), stopped: make(chan struct{}),
	}
	if err := migrateLocked(ctx, db, file); err != nil {
		return nil, fmt.Errorf("open store %s: %w", file, errors.Join(err, db.Close()))
	}
	if err := s.prepare(ctx); err != nil {
		return nil, fmt.Errorf("open store %s: %w", file, errors.Join(err, db.Close()))
	}
	go s.writeLoop()
	return s, nil
}

// Close waits for the running transaction, fails waiting calls with ErrClosed, and
// closes the database. It may be called twice.
func (s *Store) Close() error {
	s.once.Do(func() {
		close(s.closing)
		<-s.stopped
		if err := errors.Join(s.stmts.close(), s.db.Close()); err != nil {
			s.closeErr = fmt.Errorf("close store: %w", err)
		}
	})
	return s.closeErr
}

// DB is the pool itself, for packages that keep tables of their own in the
// same database. Transactions begin with the write lock. Do not close it.
func (s *Store) DB() *sql.DB { return s.db }

// Ping commits a write of one row, so it fails if the store can only be read.
func (s *Store) Ping(ctx context.Context) error {
	at := time.Now().UnixMilli()
	return s.write(ctx, "check that the store is writable", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.StmtContext(ctx, s.stmts.probe).ExecContext(ctx, at)
		return err
	})
}

// closed reports whether Close has begun.
func (s *Store) closed() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}
