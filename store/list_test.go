package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/store"
	"reprise/tasks"
)

func TestSpentSumsUnitsByPeriodAndGroup(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), fresh(t)
	live := attempt("k1", 0, "a", tasks.Retry, tasks.Ambiguous, 0)
	live.Queue, live.Call.Units = "recognize.live", 5
	moved := attempt("k1", 0, "b", tasks.Done, tasks.Match, 10) // the task was moved to another group's queue
	moved.Queue = "recognize.backfill"
	settleAll(t, s, live, moved, attempt("k2", 0, "c", tasks.Done, tasks.Match, 20), attempt("k3", 0, "d", tasks.Done, tasks.Match, 30))
	for name, row := range map[string]struct {
		spending store.CallFilter
		want     int64
	}{
		"all":                        {store.CallFilter{}, 8},
		"the group that was charged": {store.CallFilter{Group: "live"}, 5},
		"another group":              {store.CallFilter{Group: "backfill"}, 1},
		"wildcards are plain text":   {store.CallFilter{Group: "%"}, 0},
		"by period":                  {store.CallFilter{Since: start.Add(10 * time.Millisecond), Until: start.Add(30 * time.Millisecond)}, 2},
		"by unknown source":          {store.CallFilter{Source: "nobody"}, 0},
		"by path":                    {store.CallFilter{Source: "main", Path: tasks.Recognize}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			spent, err := s.Spent(ctx, row.spending)
			require.NoError(t, err)
			require.Equal(t, row.want, spent)
		})
	}
}

func TestCallsMatchTheirFilter(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), fresh(t)
	backup, live := attempt("k", 0, "b", tasks.Retry, tasks.Ambiguous, 10), attempt("k2", 0, "c", tasks.Done, tasks.Match, 20)
	backup.Call.Source, live.Queue = "backup", "recognize.live"
	settleAll(t, s, attempt("k", 0, "a", tasks.Retry, tasks.Unavailable, 0), backup, live)
	for name, row := range map[string]struct {
		filter store.CallFilter
		want   []string
	}{
		"all, oldest first": {store.CallFilter{}, []string{"a", "b", "c"}},
		"by key":            {store.CallFilter{Key: "k"}, []string{"a", "b"}},
		"by attempt":        {store.CallFilter{AttemptID: "c"}, []string{"c"}},
		"by source":         {store.CallFilter{Source: "backup"}, []string{"b"}},
		"by group":          {store.CallFilter{Group: "live"}, []string{"c"}},
		"by path":           {store.CallFilter{Path: tasks.Upload}, nil},
		"by period":         {store.CallFilter{Since: start.Add(time.Millisecond), Until: start.Add(20 * time.Millisecond)}, []string{"b"}},
		"limit":             {store.CallFilter{Limit: 1}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := s.Calls(ctx, row.filter)
			require.NoError(t, err)
			var ids []string
			for _, c := range found {
				ids = append(ids, c.AttemptID)
			}
			require.Equal(t, row.want, ids)
		})
	}
}

func TestTasksMatchTheirFilter(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), fresh(t)
	tomb := attempt("tomb", 0, "b", tasks.Archive, tasks.InvalidAudio, 10)
	tomb.Final, tomb.Reason, tomb.Call.Source = true, "invalid_audio: 100%_Broken", "backup"
	settleAll(t, s, attempt("done", 0, "a", tasks.Done, tasks.Match, 0), tomb,
		attempt("wait", 0, "c", tasks.Retry, tasks.Unavailable, 20), attempt("stop", 0, "d", tasks.Archive, tasks.Quota, 30))
	yes, no := true, false
	for name, row := range map[string]struct {
		filter store.TaskFilter
		want   []string
	}{
		"all, oldest change first": {store.TaskFilter{}, []string{"done", "tomb", "wait", "stop"}},
		"by verdict":               {store.TaskFilter{Verdict: tasks.Archive}, []string{"tomb", "stop"}},
		"by outcome":               {store.TaskFilter{Outcome: tasks.Quota}, []string{"stop"}},
		"by path":                  {store.TaskFilter{Path: tasks.Upload}, nil},
		"by queue":                 {store.TaskFilter{Queue: "recognize"}, []string{"done", "tomb", "wait", "stop"}},
		"by source":                {store.TaskFilter{Source: "backup"}, []string{"tomb"}},
		"by text, ignoring case":   {store.TaskFilter{Text: "BROKEN"}, []string{"tomb"}},
		"wildcards are plain text": {store.TaskFilter{Text: "0%_b"}, []string{"tomb"}},
		"by key":                   {store.TaskFilter{Text: "wai"}, []string{"wait"}},
		"finished":                 {store.TaskFilter{Finished: &yes}, []string{"done", "tomb", "stop"}},
		"unfinished":               {store.TaskFilter{Finished: &no}, []string{"wait"}},
		"replayable":               {store.TaskFilter{Replayable: true}, []string{"stop"}},
		"by time of last change":   {store.TaskFilter{Until: start.Add(20 * time.Millisecond)}, []string{"done", "tomb"}},
		"next page":                {store.TaskFilter{AfterAt: start.Add(10 * time.Millisecond), AfterKey: "tomb", Limit: 1}, []string{"wait"}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := s.Tasks(ctx, row.filter)
			require.NoError(t, err)
			var keys []string
			for _, task := range found {
				keys = append(keys, task.Key)
			}
			require.Equal(t, row.want, keys)
		})
	}
}
