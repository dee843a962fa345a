package uploadcrash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/internal/proctest"
	"reprise/internal/redistest"
	"reprise/store"
	"reprise/tasks"
)

// cell is one run of the matrix.
type cell struct {
	step  step
	fault fault
	ends  []idempotency.State
}

func cells() []cell {
	var out []cell
	for _, f := range faults {
		for _, s := range steps {
			ends := f.ends[s.phase]
			switch {
			case f.name == audDCut && (s.name == "before admission" || s.name == "admitted"):
				continue // there is no connection yet
			case f.name == audDCut && s.late:
				ends = yes // the dial is refused
			}
			if len(ends) > 0 {
				out = append(out, cell{step: s, fault: f, ends: ends})
			}
		}
	}
	return out
}

// chosen returns the cells to run, all or a random third, and prints which.
func chosen(t *testing.T) []cell {
	list := cells()
	if os.Getenv("UPLOADCRASH_MATRIX") == "full" {
		fmt.Printf("uploadcrash: all %d cells\n", len(list))
		return list
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("UPLOADCRASH_MATRIX_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "UPLOADCRASH_MATRIX_SEED")
	}
	random := rand.New(rand.NewPCG(seed, 0))
	order := random.Perm(len(list))[:(len(list)+2)/3]
	fmt.Printf("uploadcrash: %d of %d cells, again with UPLOADCRASH_MATRIX_SEED=%d\n", len(order), len(list), seed)
	slices.Sort(order)
	var out []cell
	for _, i := range order {
		out = append(out, list[i])
	}
	return out
}

func TestUploadCrashMatrix(t *testing.T) {
	t.Parallel()
	for _, c := range chosen(t) {
		t.Run(c.fault.name+"/"+c.step.name, func(t *testing.T) {
			t.Parallel()
			u := newUpload(t, plan{late: c.step.late, size: c.step.size})
			s := c.step.halt(u)
			s.late = c.step.late
			u.startFirst()
			u.enqueue()
			u.approach(c, s)
			s.wait()
			c.fault.happen(u, s)
			u.requireEnd(c.ends...)
		})
	}
}

// approach waits until the first worker is near its step, or has the task, and
// starts the second worker where it could not start later.
func (u *upload) approach(c cell, s stop) {
	meet := c.fault.meet
	if c.fault.name == "lost lease" && s.near != nil {
		meet = (*upload).loseLease // no worker starts while the database is locked
	}
	switch {
	case s.near != nil:
		s.near()
	case meet != nil:
		proctest.Eventually(u.T, func() bool { return u.Counts(queue).Pending == 0 })
	}
	if meet != nil {
		meet(u)
	}
}

// requireEnd waits for the end of the task. It requires one of these states of
// the ledger and what is right for every end.
func (u *upload) requireEnd(ends ...idempotency.State) {
	t := u.T
	t.Helper()
	u.hurry(u.over, "the task does not end\nledger %+v\nstore %+v\nqueue %+v",
		func() any { return u.ledgerEntry() }, func() any { return u.Status(u.task) }, func() any { return u.Counts(queue) })
	send, st, status := u.Sim.Bill().Upload(audioID), u.ledgerEntry(), u.Status(u.task)
	about := fmt.Sprintf("simulator %+v\nledger %+v\nstore %+v", send, st, status)
	require.LessOrEqual(t, send.Started, int64(1), "sends\n%s", about)
	require.Contains(t, ends, st.State, about)
	u.requireAgreement(st, status, about)
	u.requireCallRow(st, about)
}

// requireAgreement requires that the ledger, the store, asynq and AudD's catalog agree.
func (u *upload) requireAgreement(st idempotency.UploadStatus, status store.TaskStatus, about string) {
	t := u.T
	t.Helper()
	verdicts := map[idempotency.State]tasks.Verdict{
		idempotency.Settled: tasks.Done, idempotency.Rejected: tasks.Archive, idempotency.Uncertain: tasks.Hold,
	}
	require.Equal(t, verdicts[st.State], status.Verdict, about)
	state, err := redistest.TaskState(t.Context(), u.Redis, queue, u.task.Key)
	require.NoError(t, err)
	switch st.State {
	case idempotency.Settled:
		require.Contains(t, []string{"completed", "archived", ""}, state, about) // archived as uncertain before a late response
		require.Equal(t, tasks.Uploaded, status.Outcome, about)
		require.Len(t, u.Sim.Catalog(), 1, about)
		require.Equal(t, u.sha, u.Sim.Catalog()[0].Hash, about)
		require.Len(t, u.Sim.Catalog()[0].History, 1, about)
	case idempotency.Uncertain:
		require.Equal(t, "archived", state, about)
		listed, err := u.ledger.List(t.Context(), idempotency.Filter{States: []idempotency.State{idempotency.Uncertain}})
		require.NoError(t, err)
		require.Len(t, listed, 1, about)
	case idempotency.Free, idempotency.Sent, idempotency.Rejected, idempotency.Released: // only the verdict
	}
}

// requireCallRow requires that the send has one call row and that no latch is left.
// The row has its unit unless AudD saw no request.
func (u *upload) requireCallRow(st idempotency.UploadStatus, about string) {
	t := u.T
	t.Helper()
	calls := u.Calls(store.CallFilter{Key: u.task.Key, AttemptID: st.Send.AttemptID})
	require.Len(t, calls, 1, "call rows of the send %s\n%s", st.Send.AttemptID, about)
	if calls[0].Units == 0 {
		require.Zero(t, u.Sim.Bill().Upload(audioID).Started, "a send without its unit: %+v\n%s", calls[0], about)
	}
	detail, err := u.ledger.Show(t.Context(), u.task.Key)
	require.NoError(t, err)
	for _, s := range detail.Sends {
		require.NotEqual(t, idempotency.Sent, s.State, about)
		require.True(t, s.State == idempotency.Released || s.Generation == st.Generation, "%+v\n%s", s, about)
	}
}
