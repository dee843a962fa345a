package store_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/store"
	"reprise/tasks"
)

// Variables that pass a job and a database file to a child process, which runs this test binary.
const (
	childEnv     = "STORE_TEST_CHILD"
	childFileEnv = "REPRISE_STORE_TEST_FILE"
	settleJob    = "settle"
	openJob      = "open"
)

// child returns the command that starts a child process.
func child(t *testing.T, job, file string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"="+job, childFileEnv+"="+file)
	return cmd
}

// runChild is the main function of a child process.
func runChild(job string) int {
	s, err := store.Open(context.Background(), config(os.Getenv(childFileEnv)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if job == settleJob {
		settleUntilKilled(s)
	}
	if err := s.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// settleUntilKilled settles in several goroutines and prints each acknowledged settlement's attempt id.
func settleUntilKilled(s *store.Store) {
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d-%d", worker, i)
				if err := s.Settle(context.Background(), attempt("key-"+id, 0, id, tasks.Done, tasks.Match, i)); err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				fmt.Println(id) // one unbuffered system call per line, so lines stay whole
			}
		})
	}
	wg.Wait()
}
