package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ownCPU is the CPU time this process has used.
func ownCPU() time.Duration {
	var use unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &use) != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

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
