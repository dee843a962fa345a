package main

import (
	"bufio"
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
)

// asProcess makes the test binary be the command, so that signals and exit codes are real.
const asProcess = "AUDDSIM_TEST_AS_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func start(t *testing.T, args ...string) (cmd *exec.Cmd, url string) {
	t.Helper()
	cmd = exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProcess+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // already gone when the test went well
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	fields := strings.Fields(line)
	require.GreaterOrEqual(t, len(fields), 4, line)
	return cmd, fields[3]
}

func TestProcessServesAndEndsCleanlyOnSignals(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		rules := filepath.Join(t.TempDir(), "rules.json")
		require.NoError(t, os.WriteFile(rules, []byte(`[{"path":"streams","code":903,"times":1}]`), 0o600))
		cmd, url := start(t, "--tokens", "a,b", "--rules", rules, "--samples", "--latency", "1ms", "--latency-jitter", "0.2", "--rate", "100",
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

		require.NoError(t, cmd.Process.Signal(sig))
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			require.NoError(t, err, "exit code 0")
		case <-time.After(5 * time.Second):
			t.Fatal("still running after", sig)
		}
	}
}

func TestWrongSettingsAreOneLineAndExitCode1(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--rate", "-1"}, {"--rules", "/nonexistent/rules.json"}, {"--addr", "127.0.0.1:notaport"}} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 1, run(t.Context(), args, &stdout, &stderr), args)
		require.Empty(t, stdout.String())
		require.Equal(t, 1, strings.Count(stderr.String(), "\n"), stderr.String())
		require.Contains(t, stderr.String(), "auddsim: ")
	}
}

func TestWrongUsageSaysWhereHelpIs(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"extra"}, {"--fly"}, {"--rate", "fast"}} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 2, run(t.Context(), args, &stdout, &stderr), args)
		require.Empty(t, stdout.String())
		require.Regexp(t, `(?s)^auddsim: .*\nRun 'auddsim --help' for usage.\n$`, stderr.String())
	}
}

func TestTheRulesInTheHelpAreRules(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	require.Equal(t, 0, run(t.Context(), []string{"--help"}, &stdout, &stderr))
	require.Contains(t, stdout.String(), rulesExample)
	path := filepath.Join(t.TempDir(), "rules.json")
	require.NoError(t, os.WriteFile(path, []byte(rulesExample), 0o600))
	rules, err := auddsim.LoadRules(path)
	require.NoError(t, err)
	require.Len(t, rules, 4)
}
