package redisconn

import (
	"errors"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ErrURL names the accepted forms of a Redis URL. It does not quote the URL, which may contain a password.
var ErrURL = errors.New("Redis URL must be redis://[user:password@]host:port[/db], " + //nolint:staticcheck // Redis is a name
	"rediss://… for TLS, or unix:///path/to/redis.sock[?db=n]")

// parse returns the options of a Redis URL, with the settings that all clients share.
func parse(raw string) (*redis.Options, mask, error) {
	u, err := split(strings.TrimSpace(raw))
	if err != nil {
		return nil, mask{}, err
	}
	opt, err := redis.ParseURL(u.String())
	if err != nil { // not wrapped: its text quotes the URL
		return nil, mask{}, ErrURL
	}
	opt.DialerRetries = 1            // only commands are retried
	opt.ContextTimeoutEnabled = true // deadlines also apply within a read or write
	// Both save commands per connection, goroutines, and permissions that an ACL user would need.
	opt.DisableIdentity = true
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return opt, newMask(opt), nil
}

// split parses a URL whose password may contain unescaped characters. Everything up to the last @ is user and password. A %
// without a valid escape is literal.
func split(raw string) (*url.URL, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	scheme = strings.ToLower(scheme)
	if !ok || (scheme != "redis" && scheme != "rediss" && scheme != "unix") {
		return nil, ErrURL
	}
	var user *url.Userinfo
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		name, password, has := strings.Cut(rest[:at], ":")
		rest = rest[at+1:]
		if has {
			user = url.UserPassword(unescape(name), unescape(password))
		} else {
			user = url.User(unescape(name))
		}
	}
	u, err := url.Parse(scheme + "://" + rest)
	if err != nil || u.Fragment != "" || (scheme == "unix" && u.Path == "") || (scheme != "unix" && u.Host == "") {
		return nil, ErrURL
	}
	u.User = user
	return u, nil
}

func unescape(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}
