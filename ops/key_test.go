package ops

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/store"
	"reprise/tasks"
)

func TestShortKeyKeepsTenLetters(t *testing.T) {
	t.Parallel()
	require.Equal(t, "recognize_abcdefghij", ShortKey("recognize_abcdefghijklmnop"))
	require.Equal(t, "recognize_x", ShortKey("recognize_x"))
}

func TestShownNameHidesQueriesAndControlCharacters(t *testing.T) {
	t.Parallel()
	require.Equal(t, "https://example.com/a.mp3", ShownName("https://example.com/a.mp3?sig=sesame"))
	require.Equal(t, "a\ufffdb", ShownName("a\x1bb"))
}

func TestFullKey_CompletesAnUnambiguousBeginning(t *testing.T) {
	t.Parallel()
	cfg := store.DefaultConfig()
	cfg.URL = "sqlite:" + filepath.Join(t.TempDir(), "r.db")
	st, err := store.Open(t.Context(), cfg)
	require.NoError(t, err)
	defer st.Close()
	var rows []store.Submission
	for i, key := range []string{"recognize_abcde", "recognize_abcdf", "recognize_abxyz"} {
		rows = append(rows, store.Submission{
			ID: strconv.Itoa(i), Batch: "b", Key: key, Path: tasks.Recognize, Queue: "recognize", Payload: []byte("{}"), At: now,
		})
	}
	_, err = st.Register(t.Context(), rows)
	require.NoError(t, err)
	b := newBase(Options{Store: st})
	for name, expected := range map[string]string{
		"recognize_abcde": "recognize_abcde", "recognize_abxy": "recognize_abxyz", "recognize_abxy…": "recognize_abxyz",
		"recognize_abx": "recognize_abx", "recognize_": "recognize_", "one.mp3": "one.mp3", // too short, or not a key
	} {
		got, err := b.fullKey(t.Context(), name)
		require.NoError(t, err, name)
		require.Equal(t, expected, got)
	}
	_, err = b.fullKey(t.Context(), "recognize_abcd")
	require.EqualError(t, err, "recognize_abcd is the beginning of several keys: recognize_abcde, recognize_abcdf")
	require.ErrorAs(t, err, new(*InputError))
}
