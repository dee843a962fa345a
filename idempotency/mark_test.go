package idempotency_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
)

func TestRestoredBackupFailsClosedUntilAdopted(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	l, s := open(t, filepath.Join(dir, "reprise.db"))
	latch(t, l, attempt(1, "a"))
	_, err := s.DB().Exec(`VACUUM INTO '` + filepath.Join(dir, "backup.db") + `'`)
	require.NoError(t, err)
	remembered := latch(t, l, attempt(2, "b")).Mark
	require.NoError(t, l.Check(ctx, remembered))

	restored, _ := open(t, filepath.Join(dir, "backup.db"))
	require.Equal(t, l.ID(), restored.ID())
	var behind *idempotency.BehindError
	require.ErrorAs(t, restored.Check(ctx, remembered), &behind)
	require.Equal(t, int64(1), behind.Highest.Seq)
	lost := attempt(2, "c")
	lost.Remembered = remembered
	require.ErrorContains(t, refused[*idempotency.BehindError](t, restored, lost), "restored from a backup")
	require.False(t, look(t, restored, "k2").Known)

	// If the mark was not stored in Redis, the ledger continues. The sequence number alone does not reveal the lost
	// entries.
	latch(t, restored, attempt(3, "d"))
	latch(t, restored, attempt(4, "e"))
	require.ErrorAs(t, restored.Check(ctx, remembered), &behind, "the sequence number is larger, but the entries differ")

	adopted, err := restored.Adopt(ctx, remembered, act(0))
	require.NoError(t, err)
	require.Equal(t, int64(4), adopted.Seq)
	require.NoError(t, restored.Check(ctx, remembered))
	require.NoError(t, restored.Check(ctx, adopted))
	again, err := restored.Adopt(ctx, remembered, act(0))
	require.NoError(t, err)
	require.Equal(t, adopted, again, "once")
	lost.Remembered = adopted
	require.Equal(t, int64(5), latch(t, restored, lost).Mark.Seq)
	trail, err := restored.Trail(ctx, "")
	require.NoError(t, err)
	require.Len(t, trail, 1)
	require.Contains(t, trail[0].What, "adopt ledger")
	require.ErrorAs(t, l.Check(ctx, adopted), &behind, "the original is behind the adopted one")
	_, err = restored.Adopt(ctx, remembered, idempotency.Action{})
	require.ErrorIs(t, err, idempotency.ErrInvalid)
}

func TestAnotherLedgerFailsClosedAndAMissingMarkIsAccepted(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	one, two := fresh(t), fresh(t)
	require.NotEqual(t, one.ID(), two.ID())
	remembered := latch(t, one, attempt(1, "a")).Mark
	latch(t, two, attempt(1, "a"))
	var behind *idempotency.BehindError
	require.ErrorAs(t, two.Check(ctx, remembered), &behind, "sequence number and attempt id are equal, but the ledgers differ")
	require.ErrorContains(t, behind, "but Redis expects")
	require.NoError(t, two.Check(ctx, idempotency.Mark{}))
	head, err := fresh(t).Highest(ctx)
	require.NoError(t, err)
	require.Zero(t, head.Seq)

	var marks []idempotency.Mark
	for n := range int64(5) {
		marks = append(marks, latch(t, one, attempt(10+n, attempt(10+n, "").Key)).Mark)
	}
	for _, m := range marks {
		require.NoError(t, one.Check(ctx, m), "the ledger must have older marks too")
	}
	m := marks[0]
	m.Token = "made up"
	require.Error(t, one.Check(ctx, m))
}

func TestConcurrentOpenersGetTheSameLedgerID(t *testing.T) {
	t.Parallel()
	_, s := open(t, filepath.Join(t.TempDir(), "reprise.db"))
	_, err := s.DB().Exec(`DELETE FROM upload_ledger`)
	require.NoError(t, err)
	ids := make(chan string)
	for range 8 {
		go func() {
			l, err := idempotency.New(context.Background(), s.DB(), idempotency.DefaultConfig())
			if err != nil {
				ids <- err.Error()
				return
			}
			ids <- l.ID()
		}()
	}
	first := <-ids
	for range 7 {
		require.Equal(t, first, <-ids)
	}
}
