package settings_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/settings"
)

func TestAddressesAreWrittenReadAndRemoved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	_, err := settings.ReadAddresses(dir)
	require.Equal(t, settings.ErrNoRedis, err)
	want := settings.Addresses{Redis: "unix:///r.sock", Store: "sqlite:/s.db", UI: "http://127.0.0.1:1", PID: os.Getpid()}
	require.NoError(t, settings.WriteAddresses(dir, want))
	got, err := settings.ReadAddresses(dir)
	require.NoError(t, err)
	require.Equal(t, want, got)
	info, err := os.Stat(filepath.Join(dir, "addresses.json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, settings.RemoveAddresses(dir))
	require.NoError(t, settings.RemoveAddresses(dir))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAddressesOfAnEndedProcessAreIgnored(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("true")
	require.NoError(t, cmd.Run())
	dir := t.TempDir()
	require.NoError(t, settings.WriteAddresses(dir, settings.Addresses{Redis: "redis://h", PID: cmd.Process.Pid}))
	_, err := settings.ReadAddresses(dir)
	require.ErrorIs(t, err, settings.ErrNoRedis)
	require.ErrorContains(t, err, "has ended")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "addresses.json"), []byte("{"), 0o600))
	_, err = settings.ReadAddresses(dir)
	require.NotErrorIs(t, err, settings.ErrNoRedis)
	require.Error(t, err)
}

func TestDataFolderFlagOverridesTheVariable(t *testing.T) {
	t.Parallel()
	environ := []string{"REPRISE_DATA=/env"}
	require.Equal(t, "/flag", settings.DataDir("/flag", environ))
	require.Equal(t, "/env", settings.DataDir("", environ))
	require.Equal(t, ".reprise", settings.DataDir("", nil))
}
