package record

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"reprise/admission"
	"reprise/internal/redistest"
	"reprise/store"
	"reprise/tasks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.Wrap(m)) }

// Only a store that is down is left alone for a while.
func TestInvalidSettlementDoesNotSendTheNextOneToTheOutbox(t *testing.T) {
	t.Parallel()
	c := store.DefaultConfig()
	c.URL = "sqlite:" + filepath.Join(t.TempDir(), "store.db")
	s, err := store.Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r := New(s, nil, redistest.DB(t), admission.DefaultPrefix, slog.New(slog.DiscardHandler))

	good := store.Settlement{
		Key: "good", Path: tasks.Recognize, Finished: true, Verdict: tasks.Done, Outcome: tasks.NoMatch, Result: []byte("null"), At: time.Now(),
	}
	bad := good
	bad.Key, bad.Generation = "bad", -1
	require.NoError(t, r.Save(t.Context(), Entry{Settlement: bad}))
	require.NoError(t, r.Save(t.Context(), Entry{Settlement: good}))
	st, err := s.TaskStatus(t.Context(), "good")
	require.NoError(t, err)
	require.True(t, st.Finished)
	n, err := r.Waiting(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, n, "the invalid settlement is in the outbox")
}
