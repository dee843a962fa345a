package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// maxGroup is the maximum number of operations in one transaction. Small transactions keep the write lock short for
// other processes.
const maxGroup = 128

// operation is one caller's part of a transaction. It runs again if another operation in the group fails, so it must
// not depend on the result of its first run.
type operation func(ctx context.Context, tx *sql.Tx) error

type request struct {
	run  operation
	done chan error // capacity 1, so the writer never waits for a caller
}

// write passes an operation to the writer and waits until it is committed. If ctx ends first, the operation may still
// be committed later.
func (s *Store) write(ctx context.Context, doing string, run operation) error {
	r := &request{run: run, done: make(chan error, 1)}
	select {
	case s.requests <- r:
	case <-s.closing:
		return s.failed(doing, ErrClosed)
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

// writeLoop commits the operations of all callers (group commit). Callers that arrive during a commit share the next
// transaction. A single caller never waits for others.
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

// gather returns a group with first and the requests that are already waiting.
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

// commitGroup commits a group and reports to every caller. If the group fails although the store is available, each
// operation runs again in its own transaction, so that one invalid row does not fail the others.
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

// transact runs a group's operations in one transaction. It does not use a caller's context, because a caller that
// gives up must not roll back the others. Config.BusyTimeout limits the wait for the write lock.
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
