package redisproc_test

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"reprise/internal/devredis/redisproc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// It changes PATH, so it cannot run in parallel.
func TestMissingRedisServerErrorNamesThePackageToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := redisproc.Start(t.Context(), config(t))
	require.ErrorContains(t, err, "apt-get install redis-server")
}

func TestServerAnswersWhenStartReturnsUntilItIsStopped(t *testing.T) {
	t.Parallel()
	p, err := redisproc.Start(t.Context(), config(t))
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	conn, err := net.Dial("tcp", p.Addr)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.NoError(t, p.Stop(time.Minute))
	require.NoError(t, p.Wait(), "the exit code is 0")
	_, err = net.Dial("tcp", p.Addr)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestServerWithAPasswordIsReady(t *testing.T) {
	t.Parallel()
	p, err := redisproc.Start(t.Context(), config(t, "--requirepass", "secret"))
	require.NoError(t, err)
	p.Kill()
}

func TestStartErrorQuotesTheLog(t *testing.T) {
	t.Parallel()
	_, err := redisproc.Start(t.Context(), config(t, "--no-such-setting", "1"))
	require.ErrorContains(t, err, "ended while starting")
	require.ErrorContains(t, err, "no-such-setting")
}

func TestStartFailsIfAnotherServerHasThePort(t *testing.T) {
	t.Parallel()
	first, err := redisproc.Start(t.Context(), config(t))
	require.NoError(t, err)
	t.Cleanup(first.Kill)
	conf := config(t, "--port", "0", "--unixsocket", filepath.Join(t.TempDir(), "s"))
	conf.Port = first.Port
	_, err = redisproc.Start(t.Context(), conf)
	require.ErrorContains(t, err, "another redis-server")
}

func config(t *testing.T, args ...string) redisproc.Config {
	t.Helper()
	dir := t.TempDir()
	return redisproc.Config{Dir: dir, Log: filepath.Join(dir, "redis.log"), Args: args, Death: syscall.SIGKILL}
}
