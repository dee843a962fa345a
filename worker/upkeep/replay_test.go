package upkeep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/proctest"
	"reprise/internal/queue"
	"reprise/tasks"
)

func (r *rig) replay() {
	r.t.Helper()
	require.NoError(r.t, r.rdb.HSet(r.t.Context(), replayQueues, "recognize", time.Now().Add(time.Second).UnixMilli()).Err())
	replayer := &Replayer{Gates: r.gates, Queues: r.queues, Redis: r.rdb, Store: r.store, Leader: r.leader, Log: r.slog, Warn: r.warn}
	r.start(r.leader.Run)
	r.start(replayer.Run)
	proctest.Eventually(r.t, func() bool { return r.rdb.Exists(r.t.Context(), replayQueues, replayStarted).Val() == 0 },
		"the replay does not end\n%s", func() any { return r.log.String() })
}

// asynq may have dropped an archived task, and a late ack may have completed one.
func TestReplayQueuesATaskWhateverItsStateInAsynq(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	states := []queue.State{queue.NotQueued, queue.Archived, queue.Completed, queue.Pending}
	var all []tasks.Payload
	for n, state := range states {
		p := r.task(tasks.Recognize, n)
		if state != queue.NotQueued {
			r.queued(p, state)
		}
		r.settle(p, tasks.Archive, tasks.Authentication)
		all = append(all, p)
	}
	r.replay()
	for n, p := range all {
		require.Equal(t, queue.Pending, r.state(p), "a task that was %q", states[n])
		st, err := r.store.TaskStatus(t.Context(), p.Key)
		require.NoError(t, err)
		require.False(t, st.Finished)
	}
}

func TestReplayLogsTheTasksOfAllItsPages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := range 2*replayPage + 5 {
		p := r.task(tasks.Recognize, n)
		r.queued(p, queue.Archived)
		r.settle(p, tasks.Archive, tasks.Authentication)
	}
	r.replay()
	require.EqualValues(t, 2*replayPage+5, r.logged("replayed tasks archived for an account reason", "tasks"), r.log.String())
}

func TestTaskWithoutAReadablePayloadDoesNotStopAReplay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bad := tasks.Payload{Path: tasks.Recognize, Key: "recognize_bad"}
	r.settle(bad, tasks.Archive, tasks.Authentication)
	good := r.task(tasks.Recognize, 1)
	r.queued(good, queue.Archived)
	r.settle(good, tasks.Archive, tasks.Authentication)
	r.replay()
	require.Equal(t, queue.Pending, r.state(good))
	require.Equal(t, bad.Key, r.logged("a reopened task cannot be queued: its payload in the store cannot be read", "task_id"))
}

// A crash left the note of a task that has its verdict by now.
func TestNoteOfATaskFinishedSinceItsReplayIsRemoved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.task(tasks.Recognize, 1)
	r.queued(p, queue.Completed)
	r.settle(p, tasks.Done, tasks.Match)
	require.NoError(t, r.rdb.HSet(t.Context(), replayStarted, "recognize/"+p.Key, 1).Err())
	r.replay()
	require.Equal(t, queue.Completed, r.state(p))
}
