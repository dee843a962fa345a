package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/cli"
	"reprise/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Wrap(m).Run()) }

// command runs the worker's command line with environ as its environment.
func command(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs bytes.Buffer
	code = program.Run(ctx, cli.Process{Args: args, Environ: environ, Out: &out, Err: &errs})
	return code, out.String(), errs.String()
}

func settingsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reprise.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestWrongUsagePointsToHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"nosuch"}, {"run", "--nosuch"}, {"check", "extra"}} {
		code, _, stderr := command(t, nil, args...)
		require.Equal(t, cli.Usage, code, args)
		require.Contains(t, stderr, "--help' for usage.\n", args)
	}
	code, stdout, _ := command(t, nil)
	require.Equal(t, cli.Usage, code)
	require.Contains(t, stdout, "Commands:\n")
	code, _, stderr := command(t, nil, "check")
	require.Equal(t, cli.Failed, code)
	require.NotContains(t, stderr, "--help", "a missing setting is not wrong usage")
}
