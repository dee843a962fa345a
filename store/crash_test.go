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

// Every acknowledged settlement must be stored with its call, result and task, even if the process is killed while it
// settles.
func TestAcknowledgedSettlementsSurviveSIGKILL(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "reprise.db")
	for round := range 3 {
		acknowledged := killedMidway(t, fmt.Sprintf("%s-%d", file, round), 20+60*round)
		s := open(t, fmt.Sprintf("%s-%d", file, round))
		for _, id := range acknowledged {
			st := status(t, s, "key-"+id)
			require.True(t, st.Finished, "settlement %s was acknowledged and is lost", id)
			require.JSONEq(t, fmt.Sprintf(`{"by":%q}`, id), string(st.Result))
		}
		var torn, calls int
		require.NoError(t, s.DB().QueryRow(`SELECT COUNT(*) FROM call`).Scan(&calls))
		require.GreaterOrEqual(t, calls, len(acknowledged))
		require.NoError(t, s.DB().QueryRow(`SELECT COUNT(*) FROM call c LEFT JOIN result r ON r.key = c.key
			WHERE r.key IS NULL`).Scan(&torn))
		require.Zero(t, torn, "calls without their result")
		var verdict string
		require.NoError(t, s.DB().QueryRow(`PRAGMA integrity_check`).Scan(&verdict))
		require.Equal(t, "ok", verdict)
		require.NoError(t, s.Ping(context.Background()))
	}
}

// killedMidway kills a child after it has acknowledged n settlements. It returns the attempt ids of all acknowledged
// settlements.
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
	require.Error(t, cmd.Wait(), "the child is killed")
	require.GreaterOrEqual(t, len(acknowledged), n)
	return acknowledged
}

// Six processes with ten goroutines each open a new file at once.
func TestConcurrentOpensMigrateOnce(t *testing.T) {
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
