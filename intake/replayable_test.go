package intake_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/intake"
	"reprise/store"
	"reprise/tasks"
)

func TestReplayableRefusesEveryTaskThatWasNotFinishedWithTheVerdict(t *testing.T) {
	t.Parallel()
	finished := func(v tasks.Verdict, final bool) store.TaskStatus {
		return store.TaskStatus{Known: true, Finished: true, Verdict: v, Final: final}
	}
	for name, row := range map[string]struct {
		status store.TaskStatus
		as     tasks.Verdict
		refuse string // "" = it can be replayed
	}{
		"archived":               {finished(tasks.Archive, false), tasks.Archive, ""},
		"held and released":      {finished(tasks.Hold, false), tasks.Hold, ""},
		"replay was interrupted": {store.TaskStatus{Known: true, Generation: 1}, tasks.Archive, ""},
		"waits":                  {store.TaskStatus{Known: true}, tasks.Archive, "waits for its first run (see inspect why)"},
		"failed permanently":     {finished(tasks.Archive, true), tasks.Archive, "failed permanently; enqueue its input with --force"},
		"held":                   {finished(tasks.Hold, false), tasks.Archive, "held until an operator decides: inspect uploads resolve"},
		"done":                   {finished(tasks.Done, false), tasks.Archive, "it is done; enqueue its input with --force"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := intake.Replayable(row.status, row.as)
			if row.refuse == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, intake.ErrNotReplayable)
			require.ErrorContains(t, err, row.refuse)
		})
	}
}
