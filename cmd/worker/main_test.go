package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Wrap(m).Run()) }

// command runs one with nothing but environ around it.
func command(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs bytes.Buffer
	code = run(ctx, args, environ, &out, &errs)
	return code, out.String(), errs.String()
}

func settingsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reprise.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestWrongUsageSaysWhereHelpIs(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"nosuch"}, {"run", "--nosuch"}, {"check", "extra"}, {}} {
		code, _, stderr := command(t, nil, args...)
		require.Equal(t, exitUsage, code, args)
		require.Contains(t, stderr, "Run 'worker --help' for usage.", args)
	}
	code, _, stderr := command(t, nil, "check")
	require.Equal(t, exitNoStart, code)
	require.NotContains(t, stderr, "--help", "a setting that is missing is no wrong usage")
}
