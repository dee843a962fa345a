package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"reprise/internal/redisconn"
	"reprise/internal/settings"
	"reprise/retrypolicy"
	"reprise/store/identity"
	"reprise/tasks"
)

// checkTimeout bounds each check at start.
const checkTimeout = 15 * time.Second

// TokenCheck is the result of checking the token of one source.
type TokenCheck struct {
	Source  string
	Refused bool  // AudD says that the token is invalid
	Err     error // why it was refused or could not be checked; nil = the token is valid
}

// Check makes the checks of a start and changes nothing. It fails if Redis does not respond or is too old, or if
// the store cannot be written. The result has one check per token, none with SkipAuthCheck.
func (w *Worker) Check(ctx context.Context) ([]TokenCheck, error) {
	if err := w.checkRedis(ctx); err != nil {
		return nil, err
	}
	sctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if err := w.records.Ping(sctx); err != nil {
		return nil, fmt.Errorf("check that the store takes writes: %w", err)
	}
	if w.opts.Marks != nil {
		if err := identity.Check(sctx, w.conn, w.opts.Marks); err != nil {
			return nil, err
		}
	}
	if w.opts.SkipAuthCheck {
		return nil, nil
	}
	return w.checkTokens(ctx), nil
}

// checkStart returns an error if the worker cannot work. A refused token is a warning unless AudD refuses all
// tokens.
func (w *Worker) checkStart(ctx context.Context) error {
	checks, err := w.Check(ctx)
	if err != nil {
		return err
	}
	var refused []error
	for _, c := range checks {
		switch {
		case c.Refused:
			refused = append(refused, fmt.Errorf("source %s: AudD refuses the token: %w", c.Source, c.Err))
		case c.Err != nil:
			w.log.Warn("the token could not be checked", "source", c.Source, "error", c.Err)
		}
	}
	if len(checks) > 0 && len(refused) == len(checks) {
		return fmt.Errorf("check the AudD token (see dashboard.audd.io, or start with --skip-auth-check): %w", errors.Join(refused...))
	}
	for _, err := range refused {
		w.log.Warn("a source cannot be used", "error", err)
	}
	return nil
}

// checkTokens calls AudD's getStreams with every token, which is not billed. AudD may refuse an account without a
// streams subscription; the token is valid then.
func (w *Worker) checkTokens(ctx context.Context) []TokenCheck {
	var out []TokenCheck
	for _, s := range w.opts.Sources {
		tctx, cancel := context.WithTimeout(ctx, checkTimeout)
		err := w.caller.clients[s.Name].CheckToken(tctx)
		cancel()
		c := retrypolicy.Classify(retrypolicy.CallResult{Path: tasks.Recognize, Err: err})
		out = append(out, TokenCheck{Source: s.Name, Refused: err != nil && c.Outcome == tasks.Authentication, Err: err})
	}
	return out
}

// checkRedis warns about settings with which Redis may lose an acknowledged task. Without AOF, which is Debian's
// default, a kill loses every task since the last snapshot.
func (w *Worker) checkRedis(ctx context.Context) error {
	if err := redisconn.Ping(ctx, w.opts.RedisURL); err != nil { // one short try; the client of the queue retries for much longer
		return settings.Redis{}.Reaching(err)
	}
	rctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	info, err := w.conn.Info(rctx).Result() // the in-memory Redis has no sections
	if err != nil {
		return fmt.Errorf("reach Redis (setting redis.url): %w", err)
	}
	if v := infoField(info, "redis_version"); v != "" && olderThan(v, 6, 2) {
		return fmt.Errorf("check Redis: the version is %s, but asynq needs 6.2 or later", v)
	}
	for _, s := range []struct{ name, expected string }{{"appendonly", "yes"}, {"maxmemory-policy", "noeviction"}} {
		got, err := w.conn.ConfigGet(rctx, s.name).Result()
		if err != nil { // managed Redis refuses CONFIG
			w.log.Warn("the settings of Redis cannot be read; make sure that it has appendonly yes and maxmemory-policy noeviction", "error", err)
			return nil
		}
		if v, ok := got[s.name]; ok && v != s.expected {
			w.log.Warn("Redis may lose acknowledged tasks", "setting", s.name, "is", v, "expected", s.expected)
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
	var a, b int
	_, err := fmt.Sscanf(version, "%d.%d", &a, &b)
	return err == nil && (a < major || (a == major && b < minor))
}
