package idempotency_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/idempotency"
	"reprise/store"
)

// Jobs for a child process, which runs this test binary.
const (
	childEnv     = "REPRISE_IDEMPOTENCY_TEST_CHILD"
	childFileEnv = "REPRISE_IDEMPOTENCY_TEST_FILE"
	childNameEnv = "REPRISE_IDEMPOTENCY_TEST_NAME"
	raceJob      = "race"    // wait for the parent, then latch every key
	foreverJob   = "forever" // latch keys until it is killed
	raceKeys     = 25
)

func child(t *testing.T, job, file, name string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"="+job, childFileEnv+"="+file, childNameEnv+"="+name)
	cmd.Stderr = os.Stderr
	return cmd
}

// runChild is the main function of a child process.
func runChild(job string) int {
	ctx := context.Background()
	s, err := store.Open(ctx, config(os.Getenv(childFileEnv)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	l, err := idempotency.New(ctx, s.DB(), idempotency.DefaultConfig())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("ready")
	bufio.NewScanner(os.Stdin).Scan()
	keys := raceKeys
	if job == foreverJob {
		keys = 1 << 30
	}
	for n := range int64(keys) {
		got, err := l.Latch(ctx, attempt(n, fmt.Sprintf("%s-%d", os.Getenv(childNameEnv), n)))
		if err == nil {
			fmt.Println(n, got.Mark.Seq) // one system call per line, so the parent reads whole lines only
		}
	}
	if err := s.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestOneOfManyProcessesLatchesAKey(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/reprise.db"
	l, _ := open(t, file)
	const processes = 5
	won := make(chan int64, processes*raceKeys)
	ended := make(chan error, processes)
	starters := make([]func(), 0, processes)
	for i := range processes {
		cmd := child(t, raceJob, file, fmt.Sprintf("p%d", i))
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		require.True(t, lines.Scan())
		require.Equal(t, "ready", lines.Text())
		starters = append(starters, func() {
			fmt.Fprintln(in)
			go func() {
				for lines.Scan() {
					var n, seq int64
					if _, err := fmt.Sscan(lines.Text(), &n, &seq); err == nil {
						won <- n
					}
				}
				ended <- cmd.Wait()
			}()
		})
	}
	for _, begin := range starters {
		begin()
	}
	for range processes {
		require.NoError(t, <-ended)
	}
	close(won)
	winners := map[int64]int{}
	for n := range won {
		winners[n]++
	}
	require.Len(t, winners, raceKeys)
	for n, count := range winners {
		require.Equal(t, 1, count, "key %d", n)
	}
	head, err := l.Highest(context.Background())
	require.NoError(t, err)
	require.Equal(t, int64(raceKeys), head.Seq)
}

// A latch stays in the database after its process is killed. Later attempts wait. Then the send becomes uncertain and
// no attempt sends again.
func TestAcknowledgedLatchesSurviveSIGKILL(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/reprise.db"
	cmd := child(t, foreverJob, file, "killed")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	fmt.Fprintln(in)
	var latched []int64
	for lines.Scan() {
		var n, seq int64
		if _, err := fmt.Sscan(lines.Text(), &n, &seq); err == nil {
			latched = append(latched, n)
		}
		if len(latched) == 40 {
			require.NoError(t, cmd.Process.Kill())
		}
	}
	require.Error(t, cmd.Wait(), "the child must be killed before it ends")
	require.GreaterOrEqual(t, len(latched), 40)

	l, _ := open(t, file)
	for _, n := range latched {
		key := fmt.Sprintf("k%d", n)
		require.Equal(t, idempotency.Sent, look(t, l, key).State)
		require.Equal(t, idempotency.Sent, refused[*idempotency.TakenError](t, l, attempt(n, fmt.Sprint("next", n))).Send.State)
		require.Equal(t, idempotency.Uncertain, expire(t, l, key, timeout+margin).State)
		require.Equal(t, idempotency.Uncertain, refused[*idempotency.TakenError](t, l, attempt(n, fmt.Sprint("next", n))).Send.State)
	}
	found, err := l.List(context.Background(), idempotency.Filter{States: []idempotency.State{idempotency.Uncertain}})
	require.NoError(t, err)
	require.Len(t, found, len(latched), "every latch must be listed as uncertain")
}
