package main

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/auddsim"
	"reprise/internal/cli"
	"reprise/internal/redistest"
)

// `worker check` once printed "token ok" for a token that AudD refuses and for
// one that could not be checked.
func TestCheckReportsTheTokenOfEverySource(t *testing.T) {
	t.Parallel()
	sim := auddsim.Start(t, auddsim.Config{Tokens: []string{"tok1"}})
	const both = "sources: {one: {token: tok1}, two: {token: tok2}}"
	for name, c := range map[string]struct {
		yaml, base string
		flags      []string
		code       int
		out        []string
		err        string
	}{
		"good":          {yaml: "sources: {one: {token: tok1}}", base: sim.URL, out: []string{"source one: token ok"}},
		"one refused":   {yaml: both, base: sim.URL, code: cli.Failed, out: []string{"source one: token ok", "source two: AudD refuses the token: "}, err: "AudD refuses the token of two"},
		"all refused":   {yaml: "sources: {two: {token: tok2}}", base: sim.URL, code: cli.Failed, out: []string{"source two: AudD refuses the token: "}, err: "AudD refuses the token of two"},
		"not reachable": {yaml: both, base: "http://127.0.0.1:1", code: cli.Failed, out: []string{"source one: token not checked: ", "source two: token not checked: "}, err: "the token of one, two could not be checked"},
		"left out":      {yaml: both, base: sim.URL, flags: []string{"--skip-auth-check"}, out: []string{"token not checked (--skip-auth-check)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environ := []string{
				"REPRISE_REDIS_URL=" + redistest.URL(redistest.DB(t)), "REPRISE_STORE_URL=sqlite:" + t.TempDir() + "/s.db",
				"REPRISE_CONFIG=" + settingsFile(t, c.yaml), "REPRISE_AUDD_BASE_URL=" + c.base,
			}
			code, stdout, stderr := command(t, environ, append([]string{"check"}, c.flags...)...)
			require.Equal(t, c.code, code, stderr)
			require.Contains(t, stdout, "ok: settings, Redis and store\n")
			for _, line := range c.out {
				require.Contains(t, stdout, line)
			}
			require.Contains(t, stderr, c.err)
			for _, secret := range []string{"tok1", "tok2"} {
				require.NotContains(t, stdout+stderr, secret)
			}
		})
	}
}

func TestStartErrorsNameTheSettingToChange(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() }) // after the parallel subtests
	dir := t.TempDir()
	redis := "REPRISE_REDIS_URL=" + redistest.URL(redistest.DB(t))
	for name, c := range map[string]struct {
		environ, args []string
		want          string
	}{
		"no Redis": {
			[]string{"REPRISE_REDIS_URL=redis://:sesame@127.0.0.1:1", "REPRISE_STORE_URL=sqlite:" + dir + "/a.db"},
			[]string{"check"}, "connection refused: check that it runs and that redis.url (REPRISE_REDIS_URL or --redis) is its address",
		},
		"a missing folder": {
			[]string{redis, "REPRISE_STORE_URL=sqlite:" + dir + "/nowhere/z.db"},
			[]string{"check"}, "store.url (REPRISE_STORE_URL): folder " + dir + "/nowhere does not exist",
		},
		"a port in use": {
			[]string{redis, "REPRISE_STORE_URL=sqlite:" + dir + "/b.db"},
			[]string{"run", "--skip-auth-check", "--admin", taken.Addr().String()}, ": choose another address with --admin (REPRISE_ADMIN_ADDR)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := command(t, append(c.environ, "AUDD_API_TOKEN=sesame", "REPRISE_LOG_LEVEL=error"), c.args...)
			require.Equal(t, cli.Failed, code)
			require.Contains(t, stderr, c.want)
			require.NotContains(t, stderr, "sesame")
		})
	}
	require.NoDirExists(t, dir+"/nowhere")
}
