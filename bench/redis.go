package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"reprise/admission"
	"reprise/internal/devredis/redisproc"
	"reprise/internal/queue"
	"reprise/tasks"
)

// benchRedis is a redis-server on a loopback port with an append-only file, as in production. It ends with
// this process.
type benchRedis struct {
	url  string
	rdb  *redis.Client
	proc *redisproc.Process
}

// startRedis runs a redis-server with its data in dir.
func startRedis(ctx context.Context, dir string) (*benchRedis, error) {
	proc, err := redisproc.Start(ctx, redisproc.Config{
		Dir: dir, Log: filepath.Join(dir, "redis.log"), Death: syscall.SIGKILL,
		Args: []string{"--appendonly", "yes", "--appendfsync", "everysec"},
	})
	if err != nil {
		return nil, err
	}
	return &benchRedis{url: "redis://" + proc.Addr + "/0", proc: proc, rdb: redis.NewClient(&redis.Options{Addr: proc.Addr})}, nil
}

func (b *benchRedis) close() error {
	return errors.Join(b.rdb.Close(), b.proc.Stop(redisproc.StopTimeout))
}

// fill empties Redis and enqueues payloads in a group's queue.
func (b *benchRedis) fill(ctx context.Context, group string, payloads []tasks.Payload) error {
	if err := b.rdb.FlushAll(ctx).Err(); err != nil {
		return fmt.Errorf("empty redis: %w", err)
	}
	client := asynq.NewClientFromRedisClient(b.rdb)
	var workers errgroup.Group
	workers.SetLimit(16)
	for _, p := range payloads {
		workers.Go(func() error {
			task, err := p.Task(group)
			if err != nil {
				return err
			}
			if _, err := client.EnqueueContext(ctx, task); err != nil {
				return fmt.Errorf("enqueue a task: %w", err)
			}
			return nil
		})
	}
	return workers.Wait()
}

// waitQueue waits until the statistics of a path's queue satisfy ok and returns them. It fails when the
// worker p ends.
func (b *benchRedis) waitQueue(ctx context.Context, within time.Duration, path tasks.Path, p *proc,
	ok func(queue.Stats) bool) (stats queue.Stats, err error) {
	queues := queue.New(b.rdb, admission.DefaultPrefix)
	var failed error
	err = until(ctx, within, func() bool {
		stats, failed = queues.Stats(ctx, path.Queue(""))
		failed = errors.Join(failed, p.died())
		return failed != nil || ok(stats)
	})
	if err = errors.Join(err, failed); err != nil {
		return stats, fmt.Errorf("wait for the queue %s: %w; the worker's log ends: %s", path, err, p.Tail())
	}
	return stats, nil
}

// cpu returns the CPU time of the server's main thread; 0 if Redis does not report it.
func (b *benchRedis) cpu(ctx context.Context) time.Duration {
	info := b.rdb.InfoMap(ctx, "cpu")
	var sum float64
	for _, name := range []string{"used_cpu_sys_main_thread", "used_cpu_user_main_thread"} {
		seconds, _ := strconv.ParseFloat(info.Item("CPU", name), 64)
		sum += seconds
	}
	return time.Duration(sum * float64(time.Second))
}
