package redisconn

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// mask replaces the secret parts of a Redis URL in error texts.
type mask struct{ parts []string }

func newMask(opt *redis.Options) mask {
	user, host := opt.Username, ""
	if user == "default" { // the user that Redis assumes when none is given
		user = ""
	}
	if opt.Network != "unix" {
		host, _, _ = net.SplitHostPort(opt.Addr)
	}
	parts := []string{opt.Password, user, opt.Addr, host}
	return mask{slices.DeleteFunc(parts, func(s string) bool { return s == "" })}
}

// error wraps err if its text contains a part of the URL or a network address.
func (m mask) error(err error) error {
	if err == nil || errors.Is(err, redis.Nil) {
		return err
	}
	if _, ok := errors.AsType[*maskedError](err); ok {
		return err
	}
	text := plain(err)
	for _, part := range m.parts {
		text = strings.ReplaceAll(text, part, "…")
	}
	if text == err.Error() {
		return err
	}
	return &maskedError{text: text, err: err}
}

// plain describes a network error by its operation, without the address.
func plain(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return "look up the Redis host: " + dns.Err
	}
	op, ok := errors.AsType[*net.OpError](err)
	switch {
	case ok && op.Err != nil && op.Op == "dial":
		return "connect to Redis: " + op.Err.Error()
	case ok && op.Err != nil && (op.Op == "read" || op.Op == "write"):
		return op.Op + " Redis connection: " + op.Err.Error()
	}
	return err.Error()
}

// maskedError is an error whose text contains no part of the Redis URL. It wraps the original error, which errors.Is, errors.As
// and go-redis's retry decision need.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.err }

// DialHook, ProcessHook and ProcessPipelineHook mask every error of a client.
func (m mask) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		return conn, m.error(err)
	}
}

func (m mask) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return m.error(next(ctx, cmd)) }
}

func (m mask) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if cmd.Err() != nil {
				cmd.SetErr(m.error(cmd.Err()))
			}
		}
		return m.error(err)
	}
}
