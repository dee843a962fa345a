package store_test

import (
	"bufio"
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/store"
)

// A settlement that was acknowledged is there after the process was killed in
// the middle of the next ones, and whole: call, result and task together.
func TestAcknowledgedSettlementsSurviveSIGKILL(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "reprise.db")
	for round := range 3 {
		acknowledged := killedMidway(t, fmt.Sprintf("%s-%d", file, round), 20+60*round)
		s := open(t, fmt.Sprintf("%s-%d", file, round))
		for _, id := range acknowledged {
			st := standing(t, s, "key-"+id)
			require.True(t, st.Finished, "settlement %s was acknowledged and is gone", id)
			require.JSONEq(t, fmt.Sprintf(`{"by":%q}`, id), string(st.Result))
		}
		var torn, acknowledgedCalls int
		require.NoError(t, s.DB().QueryRow(`SELECT COUNT(*) FROM call`).Scan(&acknowledgedCalls))
		require.GreaterOrEqual(t, acknowledgedCalls, len(acknowledged))
		require.NoError(t, s.DB().QueryRow(`SELECT COUNT(*) FROM call c LEFT JOIN result r ON r.key = c.key
			WHERE r.key IS NULL`).Scan(&torn))
		require.Zero(t, torn, "calls without their result")
		var verdict string
		require.NoError(t, s.DB().QueryRow(`PRAGMA integrity_check`).Scan(&verdict))
		require.Equal(t, "ok", verdict)
		require.NoError(t, s.Ping(context.Background()))
	}
}

// killedMidway lets a child settle until it has acknowledged n settlements,
// kills it, and returns all it has acknowledged.
func killedMidway(t *testing.T, file string, n int) []string {
	t.Helper()
	cmd := child(t, settleJob, file)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var acknowledged []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		acknowledged = append(acknowledged, lines.Text())
		if len(acknowledged) == n {
			require.NoError(t, cmd.Process.Kill())
		}
	}
	require.NoError(t, lines.Err())
	require.Error(t, cmd.Wait(), "the child was to be killed")
	require.GreaterOrEqual(t, len(acknowledged), n)
	return acknowledged
}

// Several stores, in one process and in others, open a new file at once.
func TestManyOpenersMigrateOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "new", "reprise.db")
	errs := make(chan error)
	for range 6 {
		cmd := child(t, openJob, file)
		go func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("child: %w: %s", err, out)
			}
			errs <- err
		}()
	}
	for range 10 {
		go func() {
			s, err := store.Open(context.Background(), config(file))
			if err == nil {
				err = s.Close()
			}
			errs <- err
		}()
	}
	for range 16 {
		require.NoError(t, <-errs)
	}
	s := open(t, file)
	var applied int
	require.NoError(t, s.DB().QueryRow(`SELECT COUNT(*) FROM goose_db_version WHERE version_id = 1`).Scan(&applied))
	require.Equal(t, 1, applied)
	require.NoError(t, s.Ping(context.Background()))
}
