package store_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/tasks"
)

// BenchmarkSettle measures durable settlements per second, for a single caller and for many callers that share
// commits.
func BenchmarkSettle(b *testing.B) {
	for _, parallelism := range []int{0, 8, 32} { // callers per GOMAXPROCS; 0 = one caller
		b.Run(fmt.Sprintf("parallelism=%d", parallelism), func(b *testing.B) {
			s := fresh(b)
			var n atomic.Int64
			settle := func() {
				i := int(n.Add(1))
				id := fmt.Sprintf("a%d", i)
				require.NoError(b, s.Settle(context.Background(), attempt("k"+id, 0, id, tasks.Done, tasks.Match, i)))
			}
			if parallelism == 0 {
				for b.Loop() {
					settle()
				}
			} else {
				b.SetParallelism(parallelism)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						settle()
					}
				})
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "settles/s")
		})
	}
}

// BenchmarkTaskStatus measures the read that precedes every delivery's call. It should take less than 100 µs.
func BenchmarkTaskStatus(b *testing.B) {
	s := fresh(b)
	const rows = 2000
	for i := range rows {
		id := fmt.Sprintf("a%d", i)
		require.NoError(b, s.Settle(context.Background(), attempt("k"+id, 0, id, tasks.Done, tasks.Match, i)))
	}
	for name, ctx := range map[string]context.Context{"plain": context.Background(), "cancellable": b.Context()} {
		b.Run(name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				_, err := s.TaskStatus(ctx, fmt.Sprintf("ka%d", i%rows))
				require.NoError(b, err)
			}
		})
	}
}
