package redisproc_test

import (
	"os"
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
func TestMissingBinaryErrorNamesThePackageToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := redisproc.Find()
	require.ErrorIs(t, err, redisproc.ErrNoBinary)
	require.ErrorContains(t, err, "apt-get install redis-server")
}

func TestServerBecomesReadyAndStops(t *testing.T) {
	t.Parallel()
	p, socket := run(t)
	require.NoError(t, p.WaitReady(t.Context()))
	require.NoError(t, redisproc.Ping(t.Context(), "unix", socket))
	require.NoError(t, p.Stop(time.Minute))
	<-p.Done()
	require.Error(t, redisproc.Ping(t.Context(), "unix", socket))
	require.NoError(t, p.Stop(time.Second), "stopping again")
	require.Error(t, p.Signal(syscall.SIGCONT))
}

func TestStopKillsAServerThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	p, _ := run(t)
	require.NoError(t, p.WaitReady(t.Context()))
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	require.ErrorContains(t, p.Stop(50*time.Millisecond), "was killed")
	<-p.Done()
}

func TestStartErrorQuotesTheLog(t *testing.T) {
	t.Parallel()
	p, _ := run(t, "--no-such-setting", "1")
	err := p.WaitReady(t.Context())
	require.ErrorContains(t, err, "ended while starting")
	require.ErrorContains(t, err, "no-such-setting")
}

func TestAnotherServerAtTheAddressIsAnError(t *testing.T) {
	t.Parallel()
	first, socket := run(t)
	require.NoError(t, first.WaitReady(t.Context()))
	other := begin(t, socket, "--port", "0", "--unixsocket", socket+"2", "--save", "")
	require.ErrorContains(t, other.WaitReady(t.Context()), "another redis-server")
}

func run(t *testing.T, args ...string) (*redisproc.Process, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "redisproc-") //nolint:usetesting // t.TempDir is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	return begin(t, socket, append([]string{"--port", "0", "--unixsocket", socket, "--save", ""}, args...)...), socket
}

func begin(t *testing.T, addr string, args ...string) *redisproc.Process {
	t.Helper()
	binary, err := redisproc.Find()
	require.NoError(t, err)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = log.Close() })
	p, err := redisproc.Start(redisproc.Config{
		Binary: binary, Args: args, Network: "unix", Addr: addr, Log: log, DeathSignal: syscall.SIGKILL,
	})
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	return p
}
