package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"reprise/internal/devredis/redisproc"
	"reprise/tasks"
)

const redisStop = 10 * time.Second

// benchRedis is a redis-server on a loopback port with an append-only file, as
// in production. It ends with this process.
type benchRedis struct {
	url  string
	rdb  *redis.Client
	proc *redisproc.Process
	log  *os.File
}

// startRedis runs a redis-server with its data in dir.
func startRedis(ctx context.Context, dir string) (*benchRedis, error) {
	binary, err := redisproc.Find()
	if err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "redis.log"))
	if err != nil {
		return nil, fmt.Errorf("create the log of redis: %w", err)
	}
	proc, err := redisproc.Start(redisproc.Config{
		Binary: binary, Network: "tcp", Addr: addr, Log: log, DeathSignal: syscall.SIGKILL,
		Args: []string{
			"--bind", "127.0.0.1", "--port", strings.TrimPrefix(addr, "127.0.0.1:"), "--dir", dir, "--save", "", "--appendonly", "yes",
			"--appendfsync", "everysec", "--maxmemory-policy", "noeviction", "--daemonize", "no",
		},
	})
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	b := &benchRedis{url: "redis://" + addr + "/0", proc: proc, log: log, rdb: redis.NewClient(&redis.Options{Addr: addr})}
	ctx, cancel := context.WithTimeout(ctx, processStart)
	defer cancel()
	if err := proc.WaitReady(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *benchRedis) close() error {
	return errors.Join(b.rdb.Close(), b.proc.Stop(redisStop), b.log.Close())
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

// cpu is the CPU time of the server's main thread; 0 if Redis does not report it.
func (b *benchRedis) cpu(ctx context.Context) time.Duration {
	info, _ := b.rdb.Info(ctx, "cpu").Result()
	var sum float64
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_sys_main_thread" || name == "used_cpu_user_main_thread" {
			seconds, _ := strconv.ParseFloat(value, 64)
			sum += seconds
		}
	}
	return time.Duration(sum * float64(time.Second))
}

// freeAddr is a loopback address that is not in use.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	if err := l.Close(); err != nil {
		return "", fmt.Errorf("release a free port: %w", err)
	}
	return l.Addr().String(), nil
}
