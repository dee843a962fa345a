package idempotency_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/tasks"
)

// after maps a send's state to the states that follow each report, in the order settled, released, rejected,
// uncertain. A star marks a late report, which changes only the audit trail. doc.go has the same table.
var after = map[idempotency.State][4]string{
	idempotency.Sent:      {"settled", "released", "rejected", "uncertain"},
	idempotency.Uncertain: {"settled", "uncertain*", "rejected", "uncertain"},
	idempotency.Settled:   {"settled", "settled*", "settled*", "settled"},
	idempotency.Rejected:  {"rejected*", "rejected", "rejected", "rejected*"},
	idempotency.Released:  {"released*", "released", "released*", "released*"},
}

func TestReportsChangeTheStateAsDocumented(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	n := int64(0)
	for state, row := range after {
		for i, effect := range effects {
			n++
			inState(t, l, n, state)
			id, key := fmt.Sprintf("a%d", n), fmt.Sprintf("k%d", n)
			trail := len(show(t, l, key).Trail)
			got := conclude(t, l, id, effect)
			want, late := strings.CutSuffix(row[i], "*")
			name := fmt.Sprintf("%s reports %s", state, effect)
			require.Equal(t, idempotency.State(want), got, name)
			require.Equal(t, got, conclude(t, l, id, effect), "the same report twice: %s", name)

			d := show(t, l, key)
			require.Equal(t, idempotency.State(want), d.Sends[0].State, name)
			if late {
				require.Len(t, d.Trail, trail+1, "written once: %s", name)
				require.Equal(t, "attempt "+id, d.Trail[trail].Who)
			} else {
				require.Len(t, d.Trail, trail, name)
			}
			wantGeneration := int64(0)
			if want == "released" {
				wantGeneration = 1
			}
			require.Equal(t, wantGeneration, d.Status.Generation, name)
		}
	}
}

func TestDocumentationHasTheTestedTable(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	doc := strings.Join(strings.Fields(string(raw)), " ")
	for state, row := range after {
		line := strings.Join(append([]string{"//", string(state)}, row[:]...), " ")
		require.Contains(t, doc, line+" //")
	}
}

func show(t testing.TB, l *idempotency.Ledger, key string) idempotency.Detail {
	t.Helper()
	d, err := l.Show(context.Background(), key)
	require.NoError(t, err)
	return d
}

func TestReportWithoutALatchIsAnErrorUnlessReleased(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	require.Empty(t, conclude(t, l, "nobody", tasks.LatchReleased))
	for _, e := range []tasks.LatchEffect{tasks.LatchSettled, tasks.LatchRejected, tasks.LatchUncertain} {
		_, err := l.Conclude(context.Background(), "nobody", idempotency.Conclusion{Effect: e, At: start})
		require.ErrorIs(t, err, idempotency.ErrUnknownAttempt)
	}
	_, err := l.Conclude(context.Background(), "nobody", idempotency.Conclusion{Effect: "untouched", At: start})
	require.ErrorIs(t, err, idempotency.ErrInvalid)
	_, err = l.Conclude(context.Background(), "nobody", idempotency.Conclusion{Effect: tasks.LatchSettled})
	require.ErrorIs(t, err, idempotency.ErrInvalid)
	_, found, err := l.SendByAttempt(context.Background(), "nobody")
	require.NoError(t, err)
	require.False(t, found)
}

func TestLateSettleReplacesAnExpiry(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	latch(t, l, attempt(1, "a"))
	require.Equal(t, idempotency.Uncertain, expire(t, l, "k1", time.Hour).State)
	conclude(t, l, "a", tasks.LatchSettled)
	st := look(t, l, "k1")
	require.Equal(t, idempotency.Settled, st.State)
	require.Equal(t, tasks.Uploaded, st.Send.Outcome)
	require.Equal(t, "req-a", st.Send.RequestID)
}

func TestLateSettleAfterARetryDoesNotChangeTheNewGeneration(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	latch(t, l, attempt(1, "a"))
	expire(t, l, "k1", time.Hour)
	got, err := l.Resolve(context.Background(), "k1", idempotency.AsRetry, act(time.Hour))
	require.NoError(t, err)
	require.Equal(t, int64(1), got.Generation)
	require.Equal(t, idempotency.Settled, conclude(t, l, "a", tasks.LatchSettled))
	st := look(t, l, "k1")
	require.Equal(t, idempotency.Free, st.State)
	require.Equal(t, int64(1), st.Generation)

	require.Equal(t, int64(1), latch(t, l, attempt(1, "b")).Generation)
	conclude(t, l, "b", tasks.LatchUncertain)
	d := show(t, l, "k1")
	require.Equal(t, idempotency.Uncertain, d.Status.State)
	require.Equal(t, []idempotency.State{idempotency.Settled, idempotency.Uncertain}, []idempotency.State{d.Sends[0].State, d.Sends[1].State})
	require.Equal(t, "resolve as retry", d.Trail[0].What)
}
