package idempotency_test

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/tasks"
)

// other returns a claim for slot n with different content.
func other(n int64, name string, replace bool) idempotency.Claim {
	c := claimOf(n)
	c.Key, c.SHA256, c.Replace, c.By = name, "sha-"+name, replace, "mia"
	return c
}

func attemptFor(c idempotency.Claim, id string) idempotency.LatchRequest {
	a := attempt(c.AudioID, id)
	a.Key, a.SHA256 = c.Key, c.SHA256
	return a
}

func TestDifferentContentGetsASlotOnlyIfTheSlotOwnerWasRejected(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	for i, s := range idempotency.States {
		n := int64(i)
		inState(t, l, n, s)
		got := claim(t, l, other(n, "other"+string(s), false))
		if s == idempotency.Rejected {
			require.NoError(t, got.Refused, "AudD has nothing in the slot")
			require.Equal(t, idempotency.Rejected, look(t, l, attempt(n, "").Key).State)
			latch(t, l, attemptFor(other(n, "other"+string(s), false), "x"))
			continue
		}
		var taken *idempotency.SlotTakenError
		require.ErrorAs(t, got.Refused, &taken, string(s))
		require.Equal(t, attempt(n, "").Key, taken.Slot.Key)
		require.Zero(t, look(t, l, "other"+string(s)).Known, "a refused claim must not write the key")
	}
}

func TestRepeatedClaimChangesNothing(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	first := claim(t, l, claimOf(1))
	require.Equal(t, idempotency.Claimed{State: idempotency.Free}, first)
	require.Equal(t, first, claim(t, l, claimOf(1)))
	latch(t, l, attempt(1, "a"))
	conclude(t, l, "a", tasks.LatchSettled)
	require.Equal(t, idempotency.Settled, claim(t, l, claimOf(1)).State, "the content is already in the slot")
}

func TestReplacedContentIsNotSentAgain(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	claim(t, l, claimOf(1))
	got := claim(t, l, other(1, "new", true))
	require.NoError(t, got.Refused)
	require.Equal(t, "k1", got.Replaced.Key)
	require.False(t, got.Reopened)
	require.Nil(t, claim(t, l, other(1, "new", true)).Replaced, "once")
	require.Equal(t, "new", refused[*idempotency.SlotTakenError](t, l, attempt(1, "a")).Slot.Key)
	require.Equal(t, "loses the slot to new", show(t, l, "k1").Trail[0].What)
	require.Equal(t, "takes the slot from k1", show(t, l, "new").Trail[0].What)
	require.Equal(t, "new", show(t, l, "k1").Status.Owner.Key)
	latch(t, l, attemptFor(other(1, "new", true), "x"))
}

func TestReclaimingReplacedContentReopensItOnce(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	inState(t, l, 1, idempotency.Settled)
	back := claimOf(1)
	back.Replace, back.By = true, "mia"

	claim(t, l, other(1, "new", true))
	require.False(t, claim(t, l, back).Reopened, "no other content was sent, so this content is still in the slot")
	require.Equal(t, idempotency.Settled, look(t, l, "k1").State)

	claim(t, l, other(1, "new", true))
	latch(t, l, attemptFor(other(1, "new", true), "x"))
	conclude(t, l, "x", tasks.LatchSettled)
	got := claim(t, l, back)
	require.True(t, got.Reopened)
	require.Equal(t, int64(1), got.Generation)
	require.False(t, claim(t, l, back).Reopened, "once")
	require.Equal(t, int64(1), latch(t, l, attempt(1, "again")).Generation)
}

func TestUncertainContentIsNotReopenedByAClaim(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	inState(t, l, 1, idempotency.Uncertain)
	claim(t, l, other(1, "new", true))
	latch(t, l, attemptFor(other(1, "new", true), "x"))
	back := claimOf(1)
	back.Replace, back.By = true, "mia"
	got := claim(t, l, back)
	require.False(t, got.Reopened)
	require.Equal(t, idempotency.Uncertain, got.State)
}

func TestRefusedClaimDoesNotAffectOthersOfItsBatch(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	claim(t, l, claimOf(1))
	same := claimOf(2)
	same.SHA256 = "sha1"
	bad := claimOf(3)
	bad.AudioID = -1
	blank := claimOf(4)
	blank.SHA256 = ""
	unsigned := other(5, "x", true)
	unsigned.By = ""
	renamed := claimOf(1)
	renamed.SHA256 = "other"
	got, err := l.Claim(context.Background(), same, other(1, "x", false), bad, blank, unsigned, renamed)
	require.NoError(t, err)
	require.NoError(t, got[0].Refused)
	require.Equal(t, []idempotency.Slot{{Source: "main", AudioID: 1, Key: "k1", SHA256: "sha1", Since: start}}, got[0].SameContent)
	require.Error(t, got[1].Refused)
	require.NoError(t, got[3].Refused)
	require.Empty(t, got[3].SameContent)
	for _, i := range []int{2, 4, 5} {
		require.ErrorIs(t, got[i].Refused, idempotency.ErrInvalid)
	}
}

func TestConcurrentClaimsOfTheSameContentGetTheSameSlot(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	const runs = 8
	got := make([]idempotency.Claimed, runs)
	var wg sync.WaitGroup
	for i := range got {
		c := claimOf(int64(i + 1))
		c.SHA256, c.Allotted = "the same", true
		c.At = start.Add(-time.Duration(i) * time.Second) // the claimers' clocks differ
		wg.Go(func() { got[i] = claim(t, l, c) })
	}
	wg.Wait()
	first := slices.IndexFunc(got, func(c idempotency.Claimed) bool { return len(c.SameContent) == 0 })
	require.GreaterOrEqual(t, first, 0)
	for i, c := range got {
		require.NoError(t, c.Refused)
		if i != first {
			require.Len(t, c.SameContent, 1)
			require.EqualValues(t, first+1, c.SameContent[0].AudioID)
		}
	}
	again := claimOf(int64(first + 1))
	again.SHA256, again.Allotted = "the same", true
	require.Empty(t, claim(t, l, again).SameContent, "the key itself is not listed as the same content")
}

func TestNextIDReturnsEachUnusedIDOnce(t *testing.T) {
	t.Parallel()
	l := fresh(t)
	ctx := context.Background()
	first, err := l.NextID(ctx, "main", 3)
	require.NoError(t, err)
	require.Equal(t, int64(1), first)
	claim(t, l, claimOf(40))
	first, err = l.NextID(ctx, "main", 1)
	require.NoError(t, err)
	require.Equal(t, int64(41), first)
	first, err = l.NextID(ctx, "elsewhere", 1)
	require.NoError(t, err)
	require.Equal(t, int64(1), first, "each source has its own ids")

	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				id, err := l.NextID(ctx, "main", 2)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				seen[id], seen[id+1] = true, true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, 80)
	_, err = l.NextID(ctx, "main", 0)
	require.ErrorIs(t, err, idempotency.ErrInvalid)
	claim(t, l, claimOf(math.MaxInt64))
	_, err = l.NextID(ctx, "main", 1)
	require.ErrorIs(t, err, idempotency.ErrInvalid)
}
