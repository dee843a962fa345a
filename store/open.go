package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // registers the "sqlite" driver
)

// Store is an open database. All methods are safe for concurrent use. Several processes may use the same file.
type Store struct {
	db       *sql.DB
	file     string // absolute path
	dialect  dialect
	stmts    statements
	requests chan *request
	closing  chan struct{}
	stopped  chan struct{} // closed when the writer has ended
	once     sync.Once
	closeErr error
	marked   atomic.Bool // this process has committed nothing since its last mark
}

// Open opens or creates the database and migrates its schema to this build's version. Several processes may open the
// same file. Open fails for an invalid setting, for a file that cannot be written or is not a database, and for a
// schema that is newer than this build. The caller must close the store.
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
		db: db, file: file, dialect: sqliteDialect,
		requests: make(chan *request), closing: make(chan struct{}), stopped: make(chan struct{}),
	}
	if err := migrateLocked(ctx, db, file); err != nil {
		return nil, fmt.Errorf("open store %s: %w", file, errors.Join(err, db.Close()))
	}
	if err := identify(ctx, s); err != nil {
		return nil, fmt.Errorf("open store %s: %w", file, errors.Join(err, db.Close()))
	}
	if err := s.prepare(ctx); err != nil {
		return nil, fmt.Errorf("open store %s: %w", file, errors.Join(err, db.Close()))
	}
	s.marked.Store(true)
	go s.writeLoop()
	return s, nil
}

// prepare prepares all fixed statements. Closing the database closes them.
func (s *Store) prepare(ctx context.Context) error {
	s.stmts = statements{}
	for _, st := range []*statement{
		selectStatus, selectPayload, selectGeneration, updateProbe, insertTask, touchTask, raiseTask, finishTask,
		putCall, putResult, registerTask, registerSubmission,
	} {
		stmt, err := s.db.PrepareContext(ctx, s.dialect.rebind(st.sql))
		if err != nil {
			return fmt.Errorf("prepare the statement to %s: %w", st.doing, err)
		}
		s.stmts[st] = stmt
	}
	return nil
}

// Close waits for the running transaction, fails waiting calls with ErrClosed and closes the database. Later calls
// return the same error.
func (s *Store) Close() error {
	s.once.Do(func() {
		close(s.closing)
		<-s.stopped
		if err := s.db.Close(); err != nil {
			s.closeErr = fmt.Errorf("close store: %w", err)
		}
	})
	return s.closeErr
}

// DB returns the connection pool, for packages with their own tables in this database. Every transaction takes the
// write lock when it begins. The caller must not close the pool.
func (s *Store) DB() *sql.DB { return s.db }

var updateProbe = &statement{"write the probe row", `
INSERT INTO probe (id, at) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET at = excluded.at`}

// Ping writes one row, so it also fails if the database is read-only.
func (s *Store) Ping(ctx context.Context) error {
	at := time.Now().UnixMilli()
	return s.write(ctx, "check that the store can be written", func(ctx context.Context, tx *sql.Tx) error {
		_, err := s.stmts.exec(ctx, tx, updateProbe, at)
		return err
	})
}
