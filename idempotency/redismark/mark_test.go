package redismark_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/idempotency/redismark"
	"reprise/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Wrap(m).Run()) }

func TestOlderMarkOfTheSameLedgerDoesNotReplaceANewerOne(t *testing.T) {
	t.Parallel()
	rdb := redistest.DB(t)
	remembered := func() idempotency.Mark {
		t.Helper()
		m, err := redismark.Read(t.Context(), rdb)
		require.NoError(t, err)
		return m
	}
	require.True(t, remembered().IsZero())
	second := idempotency.Mark{Ledger: "a", Seq: 2, Token: "two"}
	require.NoError(t, redismark.Write(t.Context(), rdb, second))
	require.NoError(t, redismark.Write(t.Context(), rdb, idempotency.Mark{Ledger: "a", Seq: 1, Token: "one"}))
	require.Equal(t, second, remembered())
	other := idempotency.Mark{Ledger: "b", Seq: 1, Token: "other"}
	require.NoError(t, redismark.Write(t.Context(), rdb, other))
	require.Equal(t, other, remembered(), "another ledger was adopted")
}
