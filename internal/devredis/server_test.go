package devredis_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"reprise/internal/devredis"
	"reprise/internal/proctest"
)

func TestDataSurvivesARestart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first := start(t, dir)
	require.True(t, first.Durable)
	require.Contains(t, first.Note, dir)
	require.NoError(t, client(t, first).Set(t.Context(), "k", "v", 0).Err())
	require.NoError(t, first.Close())
	require.NoError(t, first.Close(), "closing twice")
	<-first.Done()

	second := start(t, dir)
	require.Equal(t, "v", client(t, second).Get(t.Context(), "k").Val())
	require.FileExists(t, filepath.Join(dir, "redis.log"))
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestServerIsDurableAndEvictsNoKeys(t *testing.T) {
	t.Parallel()
	rdb := client(t, start(t, t.TempDir()))
	for name, want := range map[string]string{
		"appendonly": "yes", "appendfsync": "everysec", "maxmemory-policy": "noeviction", "port": "0", "unixsocketperm": "700",
	} {
		got, err := rdb.ConfigGet(t.Context(), name).Result()
		require.NoError(t, err)
		require.Equal(t, want, got[name], name)
	}
}

func TestSecondStartOnAFolderIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, dir)
	_, err := devredis.Start(t.Context(), dir)
	require.EqualError(t, err, fmt.Sprintf("the embedded redis is in use: process %d runs it on %s; "+
		"stop that process or choose another data folder", os.Getpid(), dir))
	require.NoError(t, client(t, first).Ping(t.Context()).Err(), "the first one still runs")
}

func TestRedisOfAKilledProcessEndsAndKeepsItsData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	owner := exec.Command(os.Args[0], "-test.run=^$")
	owner.Env = append(os.Environ(), holdEnv+"="+dir)
	owner.Stderr = os.Stderr
	out, err := owner.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, owner.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	opts, err := redis.ParseURL(strings.TrimSpace(line))
	require.NoError(t, err)
	rdb := redis.NewClient(opts)
	defer rdb.Close()
	require.NoError(t, rdb.Set(t.Context(), "k", "v", 0).Err())

	require.NoError(t, owner.Process.Kill())
	require.Error(t, owner.Wait())
	again := start(t, dir) // waits until the orphaned child, which holds the lock, has synced and ended
	require.Equal(t, "v", client(t, again).Get(t.Context(), "k").Val())
}

func TestStaleSocketIsReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "redis.sock"), Net: "unix"})
	require.NoError(t, err)
	ln.SetUnlinkOnClose(false)
	require.NoError(t, ln.Close())
	require.FileExists(t, filepath.Join(dir, "redis.sock"))
	require.NoError(t, client(t, start(t, dir)).Ping(t.Context()).Err())
}

func TestSocketOfAFolderWithALongPathIsRemovedAtTheEnd(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long ", 25))
	inst := start(t, dir)
	rdb := client(t, inst)
	socket := rdb.Options().Addr
	require.Less(t, len(socket), 100)
	require.NoError(t, rdb.Ping(t.Context()).Err())
	require.NoError(t, inst.Close())
	require.NoDirExists(t, filepath.Dir(socket))
}

func TestFolderWithSpecialCharactersIsReachableByURL(t *testing.T) {
	t.Parallel()
	inst := start(t, filepath.Join(t.TempDir(), "a b%?#é"))
	require.NoError(t, client(t, inst).Ping(t.Context()).Err())
}

func TestDoneIsClosedWhenRedisEndsUnexpectedly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inst := start(t, dir)
	rdb := client(t, inst)
	require.NoError(t, syscall.Kill(serverPid(t, rdb), syscall.SIGKILL))
	proctest.Receive(t, inst.Done(), "Done was not closed")
	require.NoError(t, inst.Close())
	start(t, dir)
}

func TestStartFailureQuotesTheLogAndFreesTheFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "appendonlydir"), []byte("not a folder"), 0o600))
	_, err := devredis.Start(t.Context(), dir)
	require.ErrorContains(t, err, "ended while starting")
	require.ErrorContains(t, err, "appendonlydir")
	require.NoError(t, os.Remove(filepath.Join(dir, "appendonlydir")))
	start(t, dir)
}

func start(t *testing.T, dir string) *devredis.Instance {
	t.Helper()
	inst, err := devredis.Start(t.Context(), dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = inst.Close() })
	return inst
}

// client connects by the URL, as other processes do.
func client(t *testing.T, inst *devredis.Instance) *redis.Client {
	t.Helper()
	opts, err := redis.ParseURL(inst.URL)
	require.NoError(t, err)
	rdb := redis.NewClient(opts)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func serverPid(t *testing.T, rdb *redis.Client) int {
	t.Helper()
	info, err := rdb.Info(t.Context(), "server").Result()
	require.NoError(t, err)
	_, rest, found := strings.Cut(info, "process_id:")
	require.True(t, found)
	text, _, _ := strings.Cut(rest, "\r")
	pid, err := strconv.Atoi(text)
	require.NoError(t, err)
	return pid
}
