package blackbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/test/rig"
)

// refusedStore runs every command with another store URL and requires that each
// ends with one sentence that has both names.
func refusedStore(r *rig.Rig, url, file, why string) {
	r.T.Helper()
	env := append(r.Env(), "REPRISE_STORE_URL="+url)
	for _, args := range [][]string{
		{"worker", "run", "--admin", "127.0.0.1:0", "--base-url", r.Sim.URL, "--enterprise-url", r.Sim.EnterpriseURL},
		{"worker", "check", "--skip-auth-check"},
		{"enqueue", "recognize", filepath.Join(r.Dir, "clips")},
		{"enqueue", "recognize", filepath.Join(r.Dir, "clips"), "--dry-run"},
		{"inspect", "tasks"},
		{"inspect", "why", filepath.Join(r.Dir, "clips", "clip-000.wav")},
	} {
		p := proctest.Run(r.T, env, args[0], args[1:]...)
		require.NotZero(r.T, p.ExitCode(), args)
		for _, part := range []string{why, file, r.StoreFile(), "inspect store adopt"} {
			require.Contains(r.T, p.Log.String(), part, args)
		}
	}
}

// `cp` leaves out what is in the write-ahead log, so that the copy of a running
// worker's store may have no table at all.
func TestStoreCopiedWithoutItsWAL_IsRefusedAndNothingIsBilledTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{})
	payloads := enqueue(r, clips(r, 20)...)
	w := r.Worker()
	r.WaitIdle(recognize)
	content, err := os.ReadFile(r.StoreFile())
	require.NoError(t, err)
	copied := filepath.Join(r.Dir, "copy.db")
	require.NoError(t, os.WriteFile(copied, content, 0o600))
	w.Stop(patience)
	refusedStore(r, "sqlite:"+copied, copied, "the queue in Redis belongs to another store: ")
	requireOnce(r, payloads)
}

func TestStoreBackup_IsRefusedOnceItIsOlderAndAdoptedOnPurpose(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{})
	w := r.Worker()
	files := clips(r, 3)
	enqueue(r, files[:1]...)
	r.WaitIdle(recognize)
	copied := filepath.Join(r.Dir, "backup.db")
	backup := proctest.Run(t, r.Env(), "worker", "backup-store", copied)
	require.Zero(t, backup.ExitCode(), backup.Log.String())
	require.Contains(t, backup.Out.String(), "copied "+r.StoreFile())
	enqueue(r, files[1:]...)
	r.WaitIdle(recognize)
	w.Stop(patience)
	require.Zero(t, proctest.Run(t, r.Env(), "enqueue", "recognize", filepath.Join(r.Dir, "clips")).ExitCode(), "the right store is known")
	refusedStore(r, "sqlite:"+copied, copied, "is an older copy: ")

	env := append(r.Env(), "REPRISE_STORE_URL=sqlite:"+copied)
	adopt := proctest.Run(t, env, "inspect", "store", "adopt")
	require.Zero(t, adopt.ExitCode(), adopt.Log.String())
	require.Contains(t, adopt.Out.String(), "adopted: the queue belongs to "+copied)
	again := proctest.Run(t, env, "enqueue", "recognize", files[0])
	require.Zero(t, again.ExitCode(), again.Log.String())
	require.Contains(t, again.Out.String(), "already done")
	require.EqualValues(t, 3, r.Sim.Bill().Units)
}

// A copy that is as good as the store when its worker starts differs from the
// first result on.
func TestSecondStoreOnTheSameRedis_StopsTheWorkerWithTheCopy(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{})
	require.Zero(t, proctest.Run(t, r.Env(), "worker", "check", "--skip-auth-check").ExitCode())
	copied := filepath.Join(r.Dir, "copy.db")
	require.NoError(t, r.Store.Backup(t.Context(), copied))
	w := r.WorkerWith([]string{"REPRISE_STORE_URL=sqlite:" + copied})
	files := clips(r, 1)
	require.Zero(t, proctest.Run(t, r.Env(), "enqueue", "recognize", files[0]).ExitCode())
	require.Equal(t, 1, w.Wait(patience))
	require.Contains(t, w.Log.String(), "is an older copy: ")
	require.NotContains(t, w.Log.String(), "panic")
}

func TestStoreURLSpelledAnotherWay_MakesNoSecondStore(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{})
	w := r.WorkerWith([]string{"REPRISE_STORE_URL= sqlite:" + r.StoreFile() + " "})
	payloads := enqueue(r, clips(r, 2)...)
	r.WaitIdle(recognize)
	w.Stop(patience)
	requireOnce(r, payloads)
	for _, url := range []string{"sqlite://r.db", "sqlite:r.db?cache=shared", "sqlite:file:r.db"} {
		for _, args := range [][]string{{"worker", "check", "--skip-auth-check"}, {"enqueue", "recognize", "x.wav"}, {"inspect", "tasks"}} {
			p := proctest.Run(t, append(r.Env(), "REPRISE_STORE_URL="+url), args[0], args[1:]...)
			require.NotZero(t, p.ExitCode())
			require.Contains(t, p.Log.String(), "use sqlite:PATH")
		}
	}
	left, err := os.ReadDir(filepath.Dir(r.StoreFile()))
	require.NoError(t, err)
	for _, f := range left {
		require.Contains(t, f.Name(), filepath.Base(r.StoreFile()))
	}
}
