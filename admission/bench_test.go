package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/redistest"
	"reprise/tasks"
)

// serverCost returns how many scripts Redis ran since the last reset, their microseconds, and Redis's total processor
// seconds.
func serverCost(t testing.TB, b *bench) (calls int, script, cpu float64) {
	t.Helper()
	stats, err := b.rdb.Info(context.Background(), "commandstats", "cpu").Result()
	require.NoError(t, err)
	for line := range strings.Lines(stats) {
		var seconds float64
		if n, _ := fmt.Sscanf(line, "used_cpu_user:%g", &seconds); n == 1 {
			cpu += seconds
		}
		if n, _ := fmt.Sscanf(line, "used_cpu_sys:%g", &seconds); n == 1 {
			cpu += seconds
		}
		_, _ = fmt.Sscanf(line, "cmdstat_evalsha:calls=%d,usec=%g", &calls, &script)
	}
	return calls, script, cpu
}

// BenchmarkAcquireSettle reports Redis's time per task with all gates on. It runs one worker (two calls a task) and
// many workers (batches).
func BenchmarkAcquireSettle(b *testing.B) {
	for _, workers := range []int{1, 64} {
		b.Run(fmt.Sprintf("%d_at_once", workers), func(b *testing.B) {
			server := redistest.NewServer(b)
			g := benchOn(b, server.Client(), func(c *Config) {
				high := Limits{
					Concurrency: 1000, RequestsPerMinute: 1e8, RequestBurst: 1e6, UnitsPerMinute: 1e8, UnitBurst: 1e6,
					UnitsPerDay: 1e9, UnitsPerMonth: 1e9,
				}
				c.Paths, c.Global = map[tasks.Path]Limits{tasks.Recognize: high}, high
				c.Groups = map[string]Group{"ugc": {Ceiling: 0.9, UnitsPerDay: 1e9, UnitsPerMonth: 1e9}}
				c.AIMD.Start = 1000
			})
			first := request("recognize_first")
			first.Group = "ugc"
			_, err := g.Acquire(b.Context(), first)
			g.seedAll(err, 0)
			require.NoError(b, g.rdb.ConfigResetStat(b.Context()).Err())
			_, _, before := serverCost(b, g)
			b.SetParallelism(workers / 2)
			if workers == 1 {
				for i := range b.N {
					r := request(keyOf(i))
					r.Group = "ugc"
					g.settle(g.acquire(r), done)
				}
			} else {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						r := request("")
						r.Key, r.Group = "recognize_"+r.AttemptID, "ugc"
						p, err := g.Acquire(context.Background(), r)
						if err != nil {
							b.Error(err)
							return
						}
						g.SettleLater(p, done)
					}
				})
			}
			require.NoError(b, g.Close())
			calls, script, cpu := serverCost(b, g)
			b.ReportMetric((cpu-before)*1e6/float64(b.N), "redis_us/task")
			b.ReportMetric(script/float64(b.N), "script_us/task")
			b.ReportMetric(float64(calls)/float64(b.N), "calls/task")
		})
	}
}
