package redisconn

import (
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ErrURL says what a Redis URL looks like. It never quotes the one it refused:
// that one may hold a password.
var ErrURL = errors.New("Redis URL cannot be read: want redis://[user:password@]host:port[/db], " + //nolint:staticcheck // Redis is a name
	"rediss://… for TLS, or unix:///path/to/redis.sock[?db=n]")

// parse reads a Redis URL into options with the defaults shared by all clients.
func parse(raw string) (*redis.Options, mask, error) {
	u, err := split(strings.TrimSpace(raw))
	if err != nil {
		return nil, mask{}, err
	}
	opt, err := redis.ParseURL(u.String())
	if err != nil { // its text quotes the URL
		return nil, mask{}, ErrURL
	}
	// Fewer commands per connection, fewer goroutines, and fewer rights that an
	// ACL user must be given.
	opt.DisableIdentity = true
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return opt, newMask(opt), nil
}

// split reads the URL leniently: a password may hold characters that should
// have been percent-encoded, so everything up to the last @ is user and
// password, and a % that starts no valid escape stands for itself.
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
	if err != nil || u.Fragment != "" || (scheme == "unix" && u.Path == "") {
		return nil, ErrURL
	}
	if scheme != "unix" && u.Host == "" {
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

// mask takes the parts of a URL out of error texts.
type mask struct{ parts []string }

func newMask(opt *redis.Options) mask {
	var m mask
	add := func(s string) {
		if s != "" {
			m.parts = append(m.parts, s)
		}
	}
	add(opt.Password)
	if opt.Username != "default" { // Redis's own name for nobody in particular
		add(opt.Username)
	}
	add(opt.Addr)
	if opt.Network != "unix" {
		host, _, err := net.SplitHostPort(opt.Addr)
		if err == nil {
			add(host)
		}
	}
	return m
}

// text is s without any part of the URL.
func (m mask) text(s string) string {
	for _, part := range m.parts {
		s = strings.ReplaceAll(s, part, "…")
	}
	return s
}
