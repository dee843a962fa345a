package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// maxGroup bounds the writes that share a transaction, and with it how long a
// transaction holds the write lock against other processes.
const maxGroup = 128

// operation is one caller's part of a transaction. It may run twice, if another
// operation of the group failed, and must then start again.
type operation func(ctx context.Context, tx *sql.Tx) error

type request struct {
	run  operation
	done chan error // capacity 1: the writer never waits for a caller
}

// write hands an operation to the writer and waits until it is committed. When
// ctx ends first, the operation may still be committed later.
func (s *Store) write(ctx context.Context, doing string, run operation) error {
	r := &request{run: run, done: make(chan error, 1)}
	select {
	case <-s.closing:
		return fmt.Errorf("%s: %w", doing, ErrClosed)
	default:
	}
	select {
	case s.requests <- r:
	case <-s.closing:
		return fmt.Errorf("%s: %w", doing, ErrClosed)
	case <-ctx.Done():
		return s.failed(doing, ctx.Err())
	}
	select {
	case err := <-r.done:
		return s.failed(doing, err)
	case <-ctx.Done():
		return s.failed(doing, ctx.Err())
	}
}

// writeLoop commits what callers hand in. While one transaction is being written
// to the disk the next callers queue up and then share the next one (group
// commit), so that a single caller does not wait and many callers share few
// syncs.
func (s *Store) writeLoop() {
	defer close(s.stopped)
	for {
		select {
		case <-s.closing:
			return
		case first := <-s.requests:
			s.commitGroup(s.gather(first))
		}
	}
}

// gather adds the callers that already wait.
func (s *Store) gather(first *request) []*request {
	group := []*request{first}
	for len(group) < maxGroup {
		select {
		case r := <-s.requests:
			group = append(group, r)
		default:
			return group
		}
	}
	return group
}

// commitGroup answers every request of the group. If the group fails although
// the store is available, each runs alone, so that one bad row does not fail the
// others.
func (s *Store) commitGroup(group []*request) {
	err := s.transact(group)
	if err != nil && len(group) > 1 && !IsUnavailable(err) {
		for _, r := range group {
			r.done <- s.transact([]*request{r})
		}
		return
	}
	for _, r := range group {
		r.done <- err
	}
}

// transact runs the group in one transaction. Its context is not
// a caller's: a caller that gives up must not roll back the others. Waiting for the write
// lock is bounded by the busy timeout.
func (s *Store) transact(group []*request) error {
	ctx := context.Background()
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	for _, r := range group {
		if err := r.run(ctx, tx); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
