package tasks

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/hibiken/asynq"
)

// Defaults of the options every task is enqueued with.
const (
	// MaxRetry is far above every budget: the policy decides, never asynq,
	// which archives even a snoozed task once Retried ≥ MaxRetry
	// (asynq processor.go handleFailedMessage).
	MaxRetry = math.MaxInt32 / 2
	// Retention keeps the id of a finished task taken for 24 h, so that an
	// enqueue whose reply was lost cannot run the task again.
	Retention = 24 * time.Hour
	// SlotWait is the longest a delivery waits in its slot for a gate.
	SlotWait = time.Minute
	// TimeoutMargin is what asynq's Timeout leaves beyond call and wait.
	TimeoutMargin = 90 * time.Second
)

// Timeout is the asynq Timeout of a path: call timeout + slot wait + margin,
// so that the handler always returns before asynq gives up on it.
func (p Path) Timeout() time.Duration { return p.CallTimeout() + SlotWait + TimeoutMargin }

// New builds the payload of a task: it sets version and key, then validates.
func New(path Path, in Input, params Params, maxUnits int64) (Payload, error) {
	params.Return = sortedSet(params.Return)
	p := Payload{Version: PayloadVersion, Path: path, Input: in, Params: params, MaxUnits: maxUnits}
	p.Key = Key(path, in, params)
	if err := p.Validate(); err != nil {
		return Payload{}, fmt.Errorf("build %s task: %w", path, err)
	}
	return p, nil
}

// Task turns a payload into the asynq task of a group's queue, with the key as
// task id. Enqueuing it twice conflicts (asynq.ErrTaskIDConflict), which means
// it is queued already.
func (p Payload) Task(group string) (*asynq.Task, error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode %s payload: %w", p.Path, err)
	}
	return asynq.NewTask(p.Path.Type(), raw,
		asynq.TaskID(p.Key),
		asynq.Queue(p.Path.Queue(group)),
		asynq.MaxRetry(MaxRetry),
		asynq.Timeout(p.Path.Timeout()),
		asynq.Retention(Retention),
	), nil
}
