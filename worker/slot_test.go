package worker

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A delivery that waits twice must not hold its slot for twice the longest wait.
func TestWaitEndsAtTheDeadlineOfItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slot{longest: time.Hour, stopping: t.Context(), waits: newWaits(slog.Default())}
		start := time.Now()
		end := s.wait(t.Context(), &delivery{}, start.Add(time.Minute), "gate", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		require.Nil(t, end, "the delivery goes on")
		require.Equal(t, time.Minute, time.Since(start))
	})
}
