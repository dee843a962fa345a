// Package redismark stores the upload ledger's latest mark in Redis. A worker compares the mark with its ledger to
// detect a ledger that was restored from a backup.
package redismark

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"reprise/idempotency"
)

// key is a hash with the fields ledger, seq and token of the latest mark. It has no TTL.
const key = "reprise:{ledger}:mark"

//go:embed remember.lua
var rememberLua string

var rememberScript = redis.NewScript(rememberLua)

// Read returns the stored mark, or the zero Mark if there is none.
func Read(ctx context.Context, rdb redis.UniversalClient) (idempotency.Mark, error) {
	h, err := rdb.HGetAll(ctx, key).Result()
	if err != nil {
		return idempotency.Mark{}, fmt.Errorf("read the ledger mark from Redis: %w", err)
	}
	if len(h) == 0 {
		return idempotency.Mark{}, nil
	}
	seq, err := strconv.ParseInt(h["seq"], 10, 64)
	if err != nil {
		return idempotency.Mark{}, fmt.Errorf("read the ledger mark from Redis: %w", err)
	}
	return idempotency.Mark{Ledger: h["ledger"], Seq: seq, Token: h["token"]}, nil
}

// Write stores a mark. It does nothing if a newer mark of the same ledger is stored.
func Write(ctx context.Context, rdb redis.UniversalClient, m idempotency.Mark) error {
	if err := rememberScript.Run(ctx, rdb, []string{key}, m.Ledger, m.Seq, m.Token).Err(); err != nil {
		return fmt.Errorf("write the ledger mark to Redis: %w", err)
	}
	return nil
}
