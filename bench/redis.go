package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"reprise/internal/devredis/redisproc"
	"reprise/tasks"
)

const (
	redisStart = 30 * time.Second
	redisStop  = 10 * time.Second
)

// benchRedis is a redis-server of a case's own on a loopback port, with AOF as
// in production. It ends with this process, however that ends.
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
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("split address %q: %w", addr, err)
	}
	log, err := os.Create(filepath.Join(dir, "redis.log"))
	if err != nil {
		return nil, fmt.Errorf("create the log of redis: %w", err)
	}
	proc, err := redisproc.Start(redisproc.Config{
		Binary: binary, Network: "tcp", Addr: addr, Log: log, DeathSignal: syscall.SIGKILL,
		Args: []string{
			"--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "", "--appendonly", "yes",
			"--appendfsync", "everysec", "--maxmemory-policy", "noeviction", "--daemonize", "no",
		},
	})
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	b := &benchRedis{url: "redis://" + addr + "/0", proc: proc, log: log, rdb: redis.NewClient(&redis.Options{Addr: addr})}
	ctx, cancel := context.WithTimeout(ctx, redisStart)
	defer cancel()
	if err := proc.WaitReady(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *benchRedis) close() error {
	return errors.Join(b.rdb.Close(), b.proc.Stop(redisStop), b.log.Close())
}

// empty forgets everything, so that rounds are alike.
func (b *benchRedis) empty(ctx context.Context) error {
	if err := b.rdb.FlushAll(ctx).Err(); err != nil {
		return fmt.Errorf("empty redis: %w", err)
	}
	return nil
}

// enqueue puts payloads into a group's queue, many at the same time.
func (b *benchRedis) enqueue(ctx context.Context, group string, payloads []tasks.Payload) error {
	client := asynq.NewClientFromRedisClient(b.rdb)
	return inParallel(16, len(payloads), func(i int) error {
		task, err := payloads[i].Task(group)
		if err != nil {
			return err
		}
		if _, err := client.EnqueueContext(ctx, task); err != nil {
			return fmt.Errorf("enqueue a task: %w", err)
		}
		return nil
	})
}

// freeAddr is a loopback address nobody listens on right now.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("look for a free port: %w", err)
	}
	addr := l.Addr().(*net.TCPAddr) // a tcp listener has no other
	if err := l.Close(); err != nil {
		return "", fmt.Errorf("give back a free port: %w", err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(addr.Port)), nil
}
