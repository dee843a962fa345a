package redisconn

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/internal/redistest"
)

func TestURLsAreParsedLeniently(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		url, network, addr, user, password string
		db                                 int
		tls                                bool
	}{
		"plain":                            {url: "redis://h:1/2", network: "tcp", addr: "h:1", db: 2},
		"default port, surrounding blanks": {url: " redis://h \n", network: "tcp", addr: "h:6379"},
		"TLS":                              {url: "rediss://h:1", network: "tcp", addr: "h:1", tls: true},
		"user and password":                {url: "redis://u:p@h:1", network: "tcp", addr: "h:1", user: "u", password: "p"},
		"escaped characters":               {url: "redis://u:p%40%2F@h:1", network: "tcp", addr: "h:1", user: "u", password: "p@/"},
		"special characters not escaped":   {url: "redis://u:p@ss/w#r?d%zz:@h:1/3", network: "tcp", addr: "h:1", user: "u", password: "p@ss/w#r?d%zz:", db: 3},
		"looks like a port and a path":     {url: "redis://:12/34@h:1", network: "tcp", addr: "h:1", password: "12/34"},
		"unix socket":                      {url: "unix:///tmp/r.sock?db=4", network: "unix", addr: "/tmp/r.sock", db: 4},
		"unix socket with user":            {url: "unix://u:p@/tmp/r.sock", network: "unix", addr: "/tmp/r.sock", user: "u", password: "p"},
		"IPv6":                             {url: "redis://[::1]:5", network: "tcp", addr: "[::1]:5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opt, _, err := parse(c.url)
			require.NoError(t, err)
			require.Equal(t, c.network, opt.Network)
			require.Equal(t, c.addr, opt.Addr)
			require.Equal(t, c.user, opt.Username)
			require.Equal(t, c.password, opt.Password)
			require.Equal(t, c.db, opt.DB)
			require.Equal(t, c.tls, opt.TLSConfig != nil)
		})
	}
}

func TestRefusedURLIsNotQuoted(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"", "h:6379", "http://u:sesame@h", "redis://u:sesame@", "redis://u:sesame@h:port", "redis://u:sesame@h/notanumber",
		"redis://u:sesame@h/1/2", "redis://u:sesame@h?nonsense=1", "unix://u:sesame@", "redis://u:sesame@h#x", "redis://u:sesame@h:1%zz",
	} {
		_, err := Queue(raw, 1)
		require.ErrorIs(t, err, ErrURL, raw)
		require.NotContains(t, err.Error(), "sesame")
		_, err = Admission(raw)
		require.ErrorIs(t, err, ErrURL, raw)
		require.ErrorIs(t, Ping(t.Context(), raw), ErrURL)
	}
}

func TestPasswordAndUserMayContainSpecialCharacters(t *testing.T) {
	t.Parallel()
	const password = `p@ss:w/o#r?d% &=+é`
	srv := redistest.NewServer(t, redistest.Password(password))
	admin := srv.Client()
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "w@rker/1", "on", ">"+password, "~*", "&*", "+@all").Err())
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">"+password, "~*", "&*", "-@all", "+get", "+hello").Err())

	for name, user := range map[string]*url.Userinfo{"password": url.UserPassword("", password), "ACL user": url.UserPassword("w@rker/1", password)} {
		u := url.URL{Scheme: "redis", Host: srv.Addr(), User: user}
		require.NoError(t, Ping(t.Context(), u.String()), name)
		c, err := Queue(u.String(), 1)
		require.NoError(t, err)
		require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err(), name)
		require.NoError(t, c.Close())
	}
	t.Run("password without escaping", func(t *testing.T) {
		require.NoError(t, Ping(t.Context(), "redis://:"+password+"@"+srv.Addr()))
	})
	t.Run("errors for a wrong password and for missing permissions contain no part of the URL", func(t *testing.T) {
		err := Ping(t.Context(), "redis://reader:wrong-secret@"+srv.Addr())
		require.ErrorContains(t, err, "WRONGPASS")
		requireHidden(t, err, "reader", "wrong-secret", srv.Addr())
		u := url.URL{Scheme: "redis", Host: srv.Addr(), User: url.UserPassword("reader", password)}
		c, err := Admission(u.String())
		require.NoError(t, err)
		defer c.Close()
		err = c.Set(t.Context(), "k", "v", 0).Err()
		require.ErrorContains(t, err, "NOPERM")
		requireHidden(t, err, "reader", password, srv.Addr())
		_, err = c.Pipelined(t.Context(), func(p redis.Pipeliner) error { p.Set(t.Context(), "k", "v", 0); return nil })
		require.ErrorContains(t, err, "NOPERM")
		requireHidden(t, err, "reader", password)
	})
}

func TestNetworkErrorsContainNoAddress(t *testing.T) {
	t.Parallel()
	srv := redistest.NewServer(t)
	proxy := redistest.NewProxy(t, srv.Addr())
	c, err := Admission("redis://" + proxy.Addr())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Ping(t.Context()).Err())
	proxy.Cut()
	host, port, _ := strings.Cut(proxy.Addr(), ":")
	err = c.Ping(t.Context()).Err()
	require.ErrorContains(t, err, "connect to Redis: ")
	requireHidden(t, err, proxy.Addr(), port, host)
	err = Ping(t.Context(), "redis://no-such-host.invalid:1")
	require.Error(t, err)
	requireHidden(t, err, "no-such-host")
}

func requireHidden(t *testing.T, err error, parts ...string) {
	t.Helper()
	require.Error(t, err)
	for e := err; e != nil; e = errors.Unwrap(e) {
		if _, masked := e.(*maskedError); masked { //nolint:errorlint // this link of the chain, not one it wraps
			break // what it wraps is not printed
		}
		for _, part := range parts {
			require.NotContains(t, e.Error(), part)
		}
	}
}
