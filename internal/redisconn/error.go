package redisconn

import (
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
)

// maskedError shows an error without any part of the Redis URL. The original
// stays reachable, so that errors.Is and errors.As, and through them
// go-redis's own decision to retry, see what it is.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.err }

// Timeout lets net.Error checks that do not unwrap keep working.
func (e *maskedError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.err, &t) && t.Timeout()
}

// error wraps err if its text shows where Redis is or how to log in.
func (m mask) error(err error) error {
	if err == nil || errors.Is(err, redis.Nil) {
		return err
	}
	if _, ok := errors.AsType[*maskedError](err); ok {
		return err
	}
	text := m.text(plain(err))
	if text == err.Error() {
		return err
	}
	return &maskedError{text: text, err: err}
}

// plain describes network errors by what failed, not by address.
func plain(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return "look up the Redis host: " + dns.Err
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		switch op.Op {
		case "dial":
			return "connect to Redis: " + op.Err.Error()
		case "read", "write":
			return fmt.Sprintf("%s Redis connection: %s", op.Op, op.Err.Error())
		}
	}
	return err.Error()
}
