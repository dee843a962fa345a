package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/auddsim"
	"reprise/internal/cli"
	"reprise/internal/proctest"
)

// asProcess makes the test binary run the command, with real signals and exit codes.
const asProcess = "AUDDSIM_TEST_AS_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		main()
	}
	os.Exit(m.Run())
}

func run(t *testing.T, args []string, stdout, stderr *bytes.Buffer) int {
	t.Helper()
	return program.Run(t.Context(), cli.Process{Args: args, Out: stdout, Err: stderr})
}

func start(t *testing.T, args ...string) (p *proctest.Process, url string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProcess+"=1")
	p = proctest.Launch(t, "auddsim", cmd)
	ready := func() bool { return strings.HasSuffix(p.Out.String(), "\n") }
	require.True(t, proctest.Poll(time.Minute, func() bool { return ready() || !p.Running() }) && ready(), p.Log.String())
	fields := strings.Fields(p.Out.String())
	require.GreaterOrEqual(t, len(fields), 4, p.Out.String())
	return p, fields[3]
}

func TestProcessStopsCleanlyOnSignals(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		rules := filepath.Join(t.TempDir(), "rules.json")
		require.NoError(t, os.WriteFile(rules, []byte(`[{"path":"streams","code":903,"times":1}]`), 0o600))
		p, url := start(t, "--tokens", "a,b", "--rules", rules, "--samples", "--latency", "1ms", "--latency-jitter", "0.2", "--rate", "100",
			"--burst", "3", "--concurrency", "4", "--quota", "10", "--seed", "5", "--match-share", "0")
		get := func(path string, out any) {
			resp, err := http.Get(url + path)
			require.NoError(t, err)
			require.NoError(t, json.NewDecoder(resp.Body).Decode(out))
			require.NoError(t, resp.Body.Close())
		}
		var env struct {
			Error struct {
				Code int `json:"error_code"`
			} `json:"error"`
		}
		get("/getStreams/?api_token=a", &env)
		require.Equal(t, 903, env.Error.Code)
		get("/getStreams/?api_token=c", &env)
		require.Equal(t, 900, env.Error.Code)
		var limits map[string]any
		get("/_sim/limits", &limits)
		require.EqualValues(t, 100, limits["rate"])
		require.EqualValues(t, "1ms", limits["latency"])

		p.Signal(sig)
		require.Zero(t, p.Wait(time.Minute), "exit code after %s", sig)
	}
}

func TestWrongSettingsPrintOneLineAndExitWith1(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--rate", "-1"}, {"--rules", "/nonexistent/rules.json"}, {"--addr", "127.0.0.1:notaport"}} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 1, run(t, args, &stdout, &stderr), args)
		require.Empty(t, stdout.String())
		require.Equal(t, 1, strings.Count(stderr.String(), "\n"), stderr.String())
		require.Contains(t, stderr.String(), "auddsim: ")
	}
}

func TestAddressInUseErrorNamesTheFlag(t *testing.T) {
	t.Parallel()
	sim := auddsim.Start(t)
	var stdout, stderr bytes.Buffer
	require.Equal(t, 1, run(t, []string{"--addr", strings.TrimPrefix(sim.URL, "http://")}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "choose another address with --addr")
}

func TestWrongUsagePointsToHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"extra"}, {"--no-such-flag"}, {"--rate", "fast"}} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 2, run(t, args, &stdout, &stderr), args)
		require.Empty(t, stdout.String())
		require.Regexp(t, `(?s)^auddsim: .*\nRun 'auddsim --help' for usage.\n$`, stderr.String())
	}
}

func TestRulesInTheHelpCanBeLoaded(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	require.Equal(t, 0, run(t, []string{"--help"}, &stdout, &stderr))
	require.Contains(t, stdout.String(), rulesExample)
	path := filepath.Join(t.TempDir(), "rules.json")
	require.NoError(t, os.WriteFile(path, []byte(rulesExample), 0o600))
	rules, err := auddsim.LoadRules(path)
	require.NoError(t, err)
	require.Len(t, rules, 4)
}
