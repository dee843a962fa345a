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
				continue // there is none yet
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

// chosen are the cells to run: all, or a third by a seed that is printed.
func chosen(t *testing.T) []cell {
	list := cells()
	if os.Getenv("UPLOADCRASH_MATRIX") == "full" {
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
	fmt.Printf("uploadcrash: %d of %d cells, UPLOADCRASH_MATRIX_SEED=%d\n", len(order), len(list), seed)
	slices.Sort(order)
	var out []cell
	for _, i := range order {
		out = append(out, list[i])
	}
	return out
}

func TestMatrix(t *testing.T) {
	t.Parallel()
	for _, c := range chosen(t) {
		t.Run(c.fault.name+"/"+c.step.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, plan{late: c.step.late, size: c.step.size})
			s := c.step.halt(r)
			s.late = c.step.late
			r.startFirst()
			r.enqueue()
			r.approach(c, s)
			s.wait()
			c.fault.happen(r, s)
			r.settles(c.ends...)
		})
	}
}

// approach waits until the first worker is near its step, or has the task, and
// lets the second come in where it could not later.
func (r *rig) approach(c cell, s stop) {
	meet := c.fault.meet
	if c.fault.name == "lost lease" && s.near != nil {
		meet = (*rig).loseLease // with the database locked no worker starts
	}
	switch {
	case s.near != nil:
		s.near()
	case meet != nil:
		require.True(r.t, eventually(patience, func() bool {
			n, err := redistest.CountTasks(r.t.Context(), r.rdb, queue)
			return err == nil && n.Pending == 0
		}))
	}
	if meet != nil {
		meet(r)
	}
}

// settles waits for the end of the task and checks what has to be true however
// it came about.
func (r *rig) settles(ends ...idempotency.State) {
	t := r.t
	t.Helper()
	if !r.hurry(patience, r.over) {
		n, _ := redistest.CountTasks(t.Context(), r.rdb, queue)
		require.Fail(t, "the task does not end", "ledger %+v\nstore %+v\nqueue %+v", r.look(), r.standing(), n)
	}
	send, st, standing := r.sim.Bill().Upload(audioID), r.look(), r.standing()
	about := fmt.Sprintf("simulator %+v\nledger %+v\nstore %+v", send, st, standing)
	require.LessOrEqual(t, send.Started, int64(1), "sends\n%s", about)
	require.Contains(t, ends, st.State, about)
	r.agrees(st, standing, about)
	r.nothingForgotten(st, about)
}

// agrees: ledger, store, asynq and AudD's catalog tell one story.
func (r *rig) agrees(st idempotency.UploadStatus, standing store.TaskStatus, about string) {
	t := r.t
	t.Helper()
	verdicts := map[idempotency.State]tasks.Verdict{
		idempotency.Settled: tasks.Done, idempotency.Rejected: tasks.Archive, idempotency.Uncertain: tasks.Hold,
	}
	require.Equal(t, verdicts[st.State], standing.Verdict, about)
	state, err := redistest.TaskState(t.Context(), r.rdb, queue, r.task.Key)
	require.NoError(t, err)
	switch st.State {
	case idempotency.Settled:
		require.Contains(t, []string{"completed", "archived", ""}, state, about) // archived as uncertain before its late answer
		require.Equal(t, tasks.Uploaded, standing.Outcome, about)
		require.Len(t, r.sim.Catalog(), 1, about)
		require.Equal(t, r.sha, r.sim.Catalog()[0].Hash, about)
		require.Len(t, r.sim.Catalog()[0].History, 1, about)
	case idempotency.Uncertain:
		require.Equal(t, "archived", state, about)
		listed, err := r.ledger.List(t.Context(), idempotency.Filter{States: []idempotency.State{idempotency.Uncertain}})
		require.NoError(t, err)
		require.Len(t, listed, 1, about)
	case idempotency.Free, idempotency.Sent, idempotency.Rejected, idempotency.Released: // nothing beyond the verdict
	}
}

// nothingForgotten: the send has a row of its call, with its unit unless the
// attempt itself said that nothing left (then AudD saw nothing), and no latch
// is left behind.
func (r *rig) nothingForgotten(st idempotency.UploadStatus, about string) {
	t := r.t
	t.Helper()
	calls, err := r.store.Calls(t.Context(), store.CallFilter{Key: r.task.Key, AttemptID: st.Send.AttemptID})
	require.NoError(t, err)
	require.Len(t, calls, 1, "call rows of the send %s\n%s", st.Send.AttemptID, about)
	if calls[0].Units == 0 {
		require.Zero(t, r.sim.Bill().Upload(audioID).Started, "a send without its unit: %+v\n%s", calls[0], about)
	}
	detail, err := r.ledger.Show(t.Context(), r.task.Key)
	require.NoError(t, err)
	for _, s := range detail.Sends {
		require.NotEqual(t, idempotency.Sent, s.State, about)
		require.True(t, s.State == idempotency.Released || s.Generation == st.Generation, "%+v\n%s", s, about)
	}
}
