package tasks

import (
	"math"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEnqueuedTaskHasTheDocumentedOptions(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	opt := asynq.RedisClientOpt{Addr: server.Addr()}
	client, inspector := asynq.NewClient(opt), asynq.NewInspector(opt)
	t.Cleanup(func() { client.Close(); inspector.Close() })
	params := map[Path]Params{Upload: {AudioID: new(int64(7)), Source: "main"}}
	for _, path := range Paths {
		p, err := New(path, file(hashA), params[path], 0)
		require.NoError(t, err)
		task, err := p.Task("ugc")
		require.NoError(t, err)
		info, err := client.Enqueue(task)
		require.NoError(t, err)
		assert.Equal(t, "audd:"+string(path), info.Type)
		assert.Equal(t, p.Key, info.ID)
		assert.Equal(t, string(path)+".ugc", info.Queue)
		assert.Equal(t, MaxRetry, info.MaxRetry)
		assert.Equal(t, path.Timeout(), info.Timeout)
		assert.Equal(t, 24*time.Hour, info.Retention)
		assert.True(t, info.Deadline.IsZero())

		stored, err := inspector.GetTaskInfo(info.Queue, info.ID)
		require.NoError(t, err)
		assert.Equal(t, MaxRetry, stored.MaxRetry, "fits into asynq's 32 bits")
		got, err := Decode(stored.Type, stored.Payload)
		require.NoError(t, err)
		assert.Equal(t, p, got)

		_, err = client.Enqueue(task)
		assert.ErrorIs(t, err, asynq.ErrTaskIDConflict, "the second enqueue of the same work conflicts")
	}
}

func TestTaskRejectsInvalidGroupsAndKeys(t *testing.T) {
	t.Parallel()
	p, err := New(Recognize, file(hashA), Params{}, 0)
	require.NoError(t, err)
	_, err = p.Task("UGC")
	require.ErrorContains(t, err, "group")
	p.Key = "recognize_other"
	_, err = p.Task("")
	assert.ErrorContains(t, err, "key does not match")
}

func TestTaskOptionsAreWithinTheLimitsOfAsynq(t *testing.T) {
	t.Parallel()
	assert.LessOrEqual(t, MaxRetry, math.MaxInt32, "asynq stores 32 bits")
	assert.Greater(t, MaxRetry, 1_000_000, "far above every budget")
	assert.Zero(t, Retention%time.Second, "asynq stores whole seconds")
	for _, path := range Paths {
		assert.Zero(t, path.Timeout()%time.Second, "%s", path)
		assert.Less(t, path.CallTimeout()+SlotWait, path.Timeout()-30*time.Second, "%s: the handler returns before asynq cancels it", path)
	}
	assert.Equal(t, time.Minute, Recognize.CallTimeout())
	assert.Equal(t, time.Hour, Enterprise.CallTimeout())
	assert.Equal(t, 10*time.Minute, Upload.CallTimeout())
}

func TestURLHasExpiredFromItsExpiryTimeOn(t *testing.T) {
	t.Parallel()
	in := Input{ExpiresAt: 100}
	assert.False(t, in.ExpiredAt(time.Unix(99, 999)))
	assert.True(t, in.ExpiredAt(time.Unix(100, 0)))
	assert.False(t, Input{}.ExpiredAt(time.Unix(100, 0)), "no known expiry")
}
