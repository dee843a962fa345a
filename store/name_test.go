package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/store"
)

func TestNamesComeFromTheNewestSubmissions(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), fresh(t)
	named := func(id, key, name string, age time.Duration) store.Submission {
		sub := submission(id, "b", key)
		sub.Name, sub.At = name, start.Add(-age)
		return sub
	}
	_, err := s.Register(ctx, []store.Submission{
		named("3", "recognize_ab", "/old/Übung 100%.mp3", time.Hour), named("4", "recognize_ab", "/new/Übung 100%.mp3", 0),
		named("5", "recognize_ac", "https://example.com/a/one.mp3", 2*time.Hour), named("6", "upload_ab", "", 0), named("7", "recognize_b", "one.mp3", time.Minute),
	})
	require.NoError(t, err)

	names, err := s.Names(ctx, []string{"recognize_ab", "upload_ab", "nobody"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"recognize_ab": "/new/Übung 100%.mp3"}, names)
	names, err = s.Names(ctx, nil)
	require.NoError(t, err)
	require.Empty(t, names)
	many := make([]string, 1200)
	many[1100] = "recognize_b"
	names, err = s.Names(ctx, many)
	require.NoError(t, err)
	require.Len(t, names, 1)

	latest, err := s.LatestNames(ctx, 2)
	require.NoError(t, err)
	require.Equal(t, []string{"/new/Übung 100%.mp3", "one.mp3"}, latest)

	for beginning, want := range map[string][]string{
		"recognize_a": {"recognize_ab", "recognize_ac"}, "recognize_ab": {"recognize_ab"}, "upload_": {"upload_ab"}, "r%": nil, "Recognize_a": nil,
	} {
		keys, err := s.KeysWithPrefix(ctx, beginning, 10)
		require.NoError(t, err)
		require.Equal(t, want, keys, beginning)
	}
	for base, want := range map[string][]string{"Übung 100%.mp3": {"3", "4"}, "one.mp3": {"5", "7"}, "ne.mp3": nil, "bung 100%.mp3": nil, "a/one.mp3": {"5"}} {
		rows, err := s.Submissions(ctx, store.SubmissionFilter{BaseName: base})
		require.NoError(t, err)
		var ids []string
		for _, r := range rows {
			ids = append(ids, r.Submission.ID)
		}
		require.Equal(t, want, ids, base)
	}
	found, err := s.Tasks(ctx, store.TaskFilter{Text: "OLD/"})
	require.NoError(t, err)
	require.Len(t, found, 1)
}
