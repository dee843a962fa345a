package main

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// cpu is the CPU time the main thread of this redis-server has used; 0 when it
// does not tell.
func (b *benchRedis) cpu(ctx context.Context) time.Duration {
	info, err := b.rdb.Info(ctx, "cpu").Result()
	if err != nil {
		return 0
	}
	var sum float64
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "used_cpu_sys_main_thread" && name != "used_cpu_user_main_thread" {
			continue
		}
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0
		}
		sum += seconds
	}
	return time.Duration(sum * float64(time.Second))
}
