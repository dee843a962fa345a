package worker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"reprise/audd"
	"reprise/internal/redisconn"
	"reprise/internal/settings"
	"reprise/retrypolicy"
	"reprise/tasks"
)

// checkTimeout bounds each check made at start.
const checkTimeout = 15 * time.Second

// check is what a worker makes sure of before it takes a task: Redis answers
// and keeps what it acknowledges, the store takes writes, the tokens are good.
// A token that AudD refuses stops the start only when no other is good.
func (w *Worker) check(ctx context.Context) error {
	if err := w.checkHomes(ctx); err != nil || w.opts.SkipAuthCheck {
		return err
	}
	return w.startWith(w.checkTokens(ctx))
}

// checkHomes makes sure of Redis and the store.
func (w *Worker) checkHomes(ctx context.Context) error {
	if err := w.checkRedis(ctx); err != nil {
		return err
	}
	sctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if err := w.records.Ping(sctx); err != nil {
		return fmt.Errorf("check that the store takes writes: %w", err)
	}
	return nil
}

// checkRedis warns about settings under which Redis may forget an
// acknowledged task: measured, Debian's default (no AOF) loses every task
// enqueued since the last snapshot at a kill.
func (w *Worker) checkRedis(ctx context.Context) error {
	if err := redisconn.Ping(ctx, w.opts.RedisURL); err != nil { // one try, with its own bounds: the queue's client would try for long
		return settings.Redis{}.Reaching(err)
	}
	rctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	info, err := w.conn.Info(rctx).Result() // the Redis in memory knows no section server
	if err != nil {
		return fmt.Errorf("reach Redis (setting redis.url): %w", err)
	}
	if v := infoField(info, "redis_version"); v != "" && olderThan(v, 6, 2) {
		return fmt.Errorf("check Redis: its version is %s, asynq archives only with 6.2 or later", v)
	}
	want := map[string]string{"appendonly": "yes", "maxmemory-policy": "noeviction"}
	for _, name := range []string{"appendonly", "maxmemory-policy"} {
		got, err := w.conn.ConfigGet(rctx, name).Result()
		if err != nil { // managed Redis refuses CONFIG
			w.log.Warn("Redis does not tell its settings; make sure that it has appendonly yes and maxmemory-policy noeviction", "error", err)
			return nil
		}
		if v, ok := got[name]; ok && v != want[name] {
			w.log.Warn("Redis may lose acknowledged tasks", "setting", name, "is", v, "want", want[name])
		}
	}
	return nil
}

func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return v
		}
	}
	return ""
}

func olderThan(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, errA := strconv.Atoi(parts[0])
	b, errB := strconv.Atoi(parts[1])
	return errA == nil && errB == nil && (a < major || (a == major && b < minor))
}

// TokenCheck is what AudD says of one source's token.
type TokenCheck struct {
	Source  string
	Refused bool  // AudD answered that the token is no good
	Err     error // why it was refused, or could not be checked; nil = it is good
}

// checkTokens asks AudD's unmetered getStreams with every token. An account
// without streams may refuse it for lack of a subscription, which still proves
// the token.
func (w *Worker) checkTokens(ctx context.Context) []TokenCheck {
	var out []TokenCheck
	for _, s := range w.opts.Sources {
		tctx, cancel := context.WithTimeout(ctx, checkTimeout)
		_, err := w.caller.clients[s.Name].Streams(tctx)
		cancel()
		var failed *audd.Error
		out = append(out, TokenCheck{Source: s.Name, Refused: errors.As(err, &failed) && tokenRefused(failed), Err: err})
	}
	return out
}

// startWith says whether the worker can start with what AudD says of the
// tokens: it cannot when all of them are refused.
func (w *Worker) startWith(checks []TokenCheck) error {
	var refused []error
	for _, c := range checks {
		switch {
		case c.Refused:
			refused = append(refused, fmt.Errorf("source %s: AudD refuses the token: %w", c.Source, c.Err))
		case c.Err != nil:
			w.log.Warn("the token could not be checked; going on", "source", c.Source, "error", c.Err)
		}
	}
	if len(refused) == len(checks) {
		return fmt.Errorf("check the AudD token (see dashboard.audd.io, or start with --skip-auth-check): %w", errors.Join(refused...))
	}
	for _, err := range refused {
		w.log.Warn("a source is out", "error", err)
	}
	return nil
}

func tokenRefused(e *audd.Error) bool {
	c := retrypolicy.Classify(retrypolicy.CallResult{Path: tasks.Recognize, Err: e})
	return c.Outcome == tasks.Authentication
}

// Check makes the checks of a start and changes nothing. It returns what AudD
// says of every source's token, nothing with SkipAuthCheck; the error is about
// the rest.
func (w *Worker) Check(ctx context.Context) ([]TokenCheck, error) {
	if err := w.checkHomes(ctx); err != nil || w.opts.SkipAuthCheck {
		return nil, err
	}
	return w.checkTokens(ctx), nil
}
