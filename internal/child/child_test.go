package child_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"reprise/internal/child"
	"reprise/internal/proctest"
)

// asParent makes this test binary a parent that will be killed.
const asParent = "CHILD_TEST_AS_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(asParent) != "" {
		beParent()
	}
	goleak.VerifyTestMain(m)
}

// beParent starts a child, prints its process id and waits to be killed.
func beParent() {
	p, err := child.Start(exec.Command("sleep", "600"), syscall.SIGKILL)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.Pid())
	_ = p.Wait()
	os.Exit(1)
}

func TestChildEndsWhenItsParentIsKilled(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("only Linux sends a death signal")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asParent+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err, line)
	proctest.Eventually(t, func() bool { return ended(pid) })
}

// ended reports whether a process has ended, also when its parent has not read its status.
func ended(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err != nil || strings.Contains(string(status), "\nState:\tZ")
}

func TestWaitReportsTheExitCode(t *testing.T) {
	t.Parallel()
	for code := range 3 {
		p, err := child.Start(exec.Command("sh", "-c", fmt.Sprintf("exit %d", code)), syscall.SIGKILL)
		require.NoError(t, err)
		require.Equal(t, code == 0, p.Wait() == nil)
		require.EqualError(t, p.Cause(), fmt.Sprintf("exit status %d", code))
		require.Equal(t, code, p.ExitCode())
		require.Error(t, p.Signal(syscall.SIGTERM), "it has ended")
		p.Kill()
	}
}

func TestKilledChildHasNoExitCode(t *testing.T) {
	t.Parallel()
	p, err := child.Start(exec.Command("sleep", "600"), syscall.SIGKILL)
	require.NoError(t, err)
	require.Equal(t, -1, p.ExitCode(), "it runs")
	p.Kill()
	require.Equal(t, -1, p.ExitCode())
	require.ErrorContains(t, p.Wait(), "killed")
}

func TestMissingCommandIsAnError(t *testing.T) {
	t.Parallel()
	_, err := child.Start(exec.Command("/nonexistent/command"), syscall.SIGKILL)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestKillDoesNotWaitForAGrandchildThatKeepsTheOutputOpen(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	pidFile, err := os.CreateTemp(t.TempDir(), "pid")
	require.NoError(t, err)
	defer pidFile.Close()
	cmd := exec.Command("sh", "-c", "sleep 300 & echo $! >&2; wait")
	cmd.Stdout, cmd.Stderr = &out, pidFile // exec.Cmd waits for no file
	p, err := child.Start(cmd, syscall.SIGKILL)
	require.NoError(t, err)
	var grandchild int
	proctest.Eventually(t, func() bool {
		text, err := os.ReadFile(pidFile.Name())
		if err != nil || !bytes.HasSuffix(text, []byte("\n")) {
			return false
		}
		grandchild, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	})
	defer func() { require.NoError(t, syscall.Kill(grandchild, syscall.SIGKILL)) }()
	start := time.Now()
	p.Kill()
	require.Less(t, time.Since(start), time.Minute)
}

func TestStopKillsAChildThatIgnoresSIGTERM(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	p, err := child.StartLogged(exec.Command("sh", "-c", `trap "" TERM; echo ready; while :; do sleep 0.01; done`), syscall.SIGKILL, log)
	require.NoError(t, err)
	proctest.Eventually(t, func() bool { return p.Tail() == "ready" })
	require.ErrorContains(t, p.Stop(50*time.Millisecond), "sh did not end within 50ms and was killed")
	require.NoError(t, p.Stop(time.Minute), "it has ended")
}

func TestTailIsTheEndOfTheLogOnOneLine(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(log, []byte("earlier\n"), 0o600))
	p, err := child.StartLogged(exec.Command("sh", "-c", "echo out; echo err >&2"), syscall.SIGKILL, log)
	require.NoError(t, err)
	require.NoError(t, p.Wait())
	require.Equal(t, "earlier out err", p.Tail())
	_, err = child.StartLogged(exec.Command("true"), syscall.SIGKILL, filepath.Join(log, "no"))
	require.ErrorContains(t, err, "open the log of")
}
