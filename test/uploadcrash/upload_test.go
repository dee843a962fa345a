package uploadcrash

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/idempotency"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/redistest"
	"reprise/tasks"
	"reprise/test/rig"
)

const (
	audioID = int64(4711)
	queue   = "upload"
	permits = admission.DefaultPrefix + "permits" // sorted set of task keys by the end of their permit in ms
)

// upload is one upload and the processes around it. The first worker, which
// will be stopped, connects through gates; the second connects directly.
type upload struct {
	*rig.Rig

	toRedis *gate
	toAudD  *gate
	ledger  *idempotency.Ledger
	task    tasks.Payload
	sha     string
	env     []string // more variables for all workers
	first   *proctest.Process
	second  *proctest.Process
}

// plan changes how newUpload starts.
type plan struct {
	sim  auddsim.Config
	late bool // the gate to AudD accepts no connection until serveLate
	size int  // bytes of audio; 0 = 20,000
	raw  bool // no claim in the ledger before the task is queued
}

func newUpload(t *testing.T, p plan) *upload {
	t.Helper()
	u := &upload{Rig: rig.New(t, p.sim)}
	u.toRedis = newGate(t, u.Server.Addr())
	audD := newGate
	if p.late {
		audD = newLateGate
	}
	u.toAudD = audD(t, strings.TrimPrefix(u.Sim.URL, "http://"))
	var err error
	u.ledger, err = idempotency.New(t.Context(), u.Store.DB(), idempotency.DefaultConfig())
	require.NoError(t, err)
	u.record(max(p.size, 20_000))
	if !p.raw {
		got, err := u.ledger.Claim(t.Context(), idempotency.Claim{
			Source: "main", AudioID: audioID, Key: u.task.Key, SHA256: u.sha, By: "test", At: time.Now(),
		})
		require.NoError(t, err)
		require.NoError(t, got[0].Refused)
	}
	return u
}

// record writes a distinct audio file and creates its upload task.
func (u *upload) record(size int) {
	u.T.Helper()
	content := make([]byte, size)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(u.T.Name()))).Read(content) // never fails
	sum := sha256.Sum256(content)
	u.sha = hex.EncodeToString(sum[:])
	file := filepath.Join(u.Dir, "track.wav")
	require.NoError(u.T, os.WriteFile(file, content, 0o600))
	id := audioID
	var err error
	u.task, err = tasks.New(tasks.Upload, tasks.Input{Kind: tasks.FileInput, Path: file, Size: int64(size), SHA256: u.sha},
		tasks.Params{AudioID: &id, Source: "main"}, 0)
	require.NoError(u.T, err)
}

// enqueue queues the task unless it is queued.
func (u *upload) enqueue() {
	u.T.Helper()
	task, err := u.task.Task("")
	require.NoError(u.T, err)
	_, err = asynq.NewClientFromRedisClient(u.Redis).EnqueueContext(u.T.Context(), task)
	if !errors.Is(err, asynq.ErrTaskIDConflict) {
		require.NoError(u.T, err)
	}
}

// startFirst starts the worker that will be stopped; it connects through the gates.
func (u *upload) startFirst(extra ...string) {
	u.T.Helper()
	u.first = u.worker("first", u.toRedis.addr, "http://"+u.toAudD.addr, extra...)
}

// startSecond starts a worker that connects directly.
func (u *upload) startSecond() {
	u.T.Helper()
	u.second = u.worker("second", u.Server.Addr(), u.Sim.URL)
}

func (u *upload) worker(name, redisAddr, url string, extra ...string) *proctest.Process {
	u.T.Helper()
	return u.ready(u.launch(name, redisAddr, url, extra...))
}

// launch starts a worker; ready waits until it takes tasks.
func (u *upload) launch(name, redisAddr, url string, extra ...string) *proctest.Process {
	u.T.Helper()
	env := slices.Concat(u.Env(), []string{"REPRISE_REDIS_URL=redis://" + redisAddr + "/0"}, u.env, extra)
	p := proctest.Start(u.T, env, "worker", "run", "--admin", "127.0.0.1:0", "--base-url", url, "--skip-auth-check",
		"--recognize-slots", "1", "--enterprise-slots", "0", "--upload-slots", "1")
	p.Name = "the " + name + " worker"
	return p
}

func (u *upload) ready(p *proctest.Process) *proctest.Process {
	u.T.Helper()
	p.Line("ready", proctest.Patience)
	require.True(u.T, p.Running(), "%s does not start", p.Name)
	return p
}

// exec changes the database from outside.
func (u *upload) exec(statement string) {
	u.T.Helper()
	_, err := u.Store.DB().ExecContext(context.WithoutCancel(u.T.Context()), statement)
	require.NoError(u.T, err)
}

// expireFirst makes the leases and permits of a killed or frozen worker look as if
// it had been silent for a minute.
func (u *upload) expireFirst() {
	u.T.Helper()
	u.ExpireLeases(queue)
	require.NoError(u.T, u.Redis.Eval(u.T.Context(), `
		for _, m in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do redis.call('ZINCRBY', KEYS[1], -60000, m) end return 1`,
		[]string{permits}).Err())
}

// ageSends makes unconcluded sends at least as old as the longest call and the
// margin after it.
func (u *upload) ageSends() {
	old := time.Now().Add(-31 * time.Second).UnixMilli()
	u.exec(fmt.Sprintf(`UPDATE upload SET sent_at = %[1]d - timeout_ms WHERE state = 'sent' AND sent_at > %[1]d - timeout_ms`, old))
}

// hurry waits until ok is true and makes retries due meanwhile.
func (u *upload) hurry(ok func() bool, msgAndArgs ...any) {
	u.T.Helper()
	next := time.Now()
	proctest.Eventually(u.T, func() bool {
		if now := time.Now(); now.After(next) {
			next = now.Add(500 * time.Millisecond)
			if _, err := redistest.AgeRetries(u.T.Context(), u.Redis, queue, time.Hour); err != nil {
				return false
			}
		}
		return ok()
	}, msgAndArgs...)
}

// seen reports whether a worker has logged a result for the task.
func (u *upload) seen(p *proctest.Process) bool {
	return logged(p, u.task.Key, "answer", "attempt", "answered from the store: no call")
}

func (u *upload) ledgerEntry() idempotency.UploadStatus {
	u.T.Helper()
	st, err := u.ledger.Status(u.T.Context(), u.task.Key)
	require.NoError(u.T, err)
	return st
}

// permitted reports whether the task's call has a permit.
func (u *upload) permitted() bool {
	return u.Redis.ZScore(u.T.Context(), permits, u.task.Key).Err() == nil
}

// over reports whether the task has its final verdict in the store and in asynq.
func (u *upload) over() bool {
	n, err := redistest.CountTasks(u.T.Context(), u.Redis, queue)
	if err != nil || n.Pending+n.Active+n.Scheduled+n.Retry > 0 {
		return false
	}
	s, err := u.Store.TaskStatus(u.T.Context(), u.task.Key)
	return err == nil && s.Finished
}

// logged reports whether a worker logged one of the messages about a task.
func logged(p *proctest.Process, task string, messages ...string) bool {
	for l := range p.Log.All() {
		if msg, _ := l["msg"].(string); l.Is("task_id", task) && slices.Contains(messages, msg) {
			return true
		}
	}
	return false
}
