package rig

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/redistest"
	"reprise/store"
	"reprise/tasks"
)

// Counts returns how many tasks a queue has in each of asynq's states.
func (r *Rig) Counts(queue string) redistest.Counts {
	r.T.Helper()
	n, err := redistest.CountTasks(r.T.Context(), r.Redis, queue)
	require.NoError(r.T, err)
	return n
}

// WaitIdle waits until every task of a queue is completed or archived, and returns the counts.
func (r *Rig) WaitIdle(queue string) (last redistest.Counts) {
	r.T.Helper()
	proctest.Eventually(r.T, func() bool {
		last = r.Counts(queue)
		return last.Pending+last.Active+last.Scheduled+last.Retry == 0
	}, "tasks are unfinished: %+v", func() any { return last })
	return last
}

// WaitHeld waits until the simulator holds n requests or more.
func (r *Rig) WaitHeld(n int) []auddsim.Held {
	r.T.Helper()
	ctx, cancel := context.WithTimeout(r.T.Context(), proctest.Patience)
	defer cancel()
	held, err := r.Sim.WaitHeld(ctx, n)
	require.NoError(r.T, err)
	return held
}

// Status returns a task's state in the store.
func (r *Rig) Status(p tasks.Payload) store.TaskStatus {
	r.T.Helper()
	s, err := r.Store.TaskStatus(r.T.Context(), p.Key)
	require.NoError(r.T, err)
	return s
}

// WaitFinished waits until a task has a verdict that ends it.
func (r *Rig) WaitFinished(p tasks.Payload) (last store.TaskStatus) {
	r.T.Helper()
	proctest.Eventually(r.T, func() bool {
		s, err := r.Store.TaskStatus(r.T.Context(), p.Key)
		last = s
		return err == nil && s.Finished
	}, "no verdict: the store has %+v, the queue %s", func() any { return last }, func() any { return r.queued(p) })
	return last
}

func (r *Rig) queued(p tasks.Payload) string {
	info, err := r.Inspector.GetTaskInfo(p.Path.Queue(""), p.Key)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s, retried %d, next %s, last error %q", info.State, info.Retried, time.Until(info.NextProcessAt).Round(time.Second), info.LastErr)
}

// Calls returns the call rows that match the filter.
func (r *Rig) Calls(f store.CallFilter) []store.Call {
	r.T.Helper()
	calls, err := r.Store.Calls(r.T.Context(), f)
	require.NoError(r.T, err)
	return calls
}

// Requests returns the requests with the file of a task, running ones included.
func (r *Rig) Requests(p tasks.Payload) []auddsim.Request {
	return r.Sim.Requests(auddsim.Filter{Path: string(p.Path), Name: filepath.Base(p.Input.Path)})
}

// ExpireLeases makes asynq's leases in a queue as old as if their worker had been silent for a minute, and
// returns their number. A worker that starts afterwards takes those tasks over.
func (r *Rig) ExpireLeases(queue string) int {
	r.T.Helper()
	n, err := redistest.ExpireLeases(r.T.Context(), r.Redis, queue)
	require.NoError(r.T, err)
	return n
}

// LockStore begins a transaction in the SQLite file, IMMEDIATE or EXCLUSIVE, and holds it until unlock is
// called.
func (r *Rig) LockStore(kind string) (unlock func()) {
	r.T.Helper()
	db, err := sql.Open("sqlite", fmt.Sprintf("%s?_pragma=busy_timeout(%d)", r.StoreFile(), proctest.Patience.Milliseconds()))
	require.NoError(r.T, err)
	r.T.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(r.T.Context())
	require.NoError(r.T, err)
	_, err = conn.ExecContext(r.T.Context(), "BEGIN "+kind)
	require.NoError(r.T, err)
	return func() {
		_, _ = conn.ExecContext(context.Background(), "ROLLBACK") // closing the connection rolls back too
		_ = conn.Close()
	}
}
