package ops

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/store"
	"reprise/tasks"
)

func TestDescribeNamesTheSongOrTheReason(t *testing.T) {
	t.Parallel()
	done := func(result string) store.TaskStatus {
		return store.TaskStatus{Finished: true, Verdict: tasks.Done, Outcome: tasks.Match, Result: []byte(result)}
	}
	require.Equal(t, "Paper Boats – Adrift", describe(done(`{"artist":"Paper Boats","title":"Adrift"}`)))
	require.Empty(t, describe(done(`null`)))
	require.Equal(t, "A – B and 1 more song", describe(done(`[{"songs":[{"artist":"A","title":"B"},{"artist":"A","title":"B"}]},{"songs":[{"artist":"C","title":"D"}]}]`)))
	require.Equal(t, "quota: used up", describe(store.TaskStatus{Reason: "quota: used up"}))
}

func TestResultWordIsTheOutcomeOrTheState(t *testing.T) {
	t.Parallel()
	require.Equal(t, "waiting", InputResult{State: stateWord(false, "")}.Word())
	require.Equal(t, "no_match", InputResult{State: "done", Outcome: tasks.NoMatch}.Word())
	require.Equal(t, "archive", InputResult{State: "archive", Outcome: tasks.Quota}.Word())
}
