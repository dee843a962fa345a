package tasks

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
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

// New builds the payload of a task: it brings names and hashes into their one
// form (trimmed, lower case, providers sorted), sets version and key, then
// validates. maxUnits is the most one call may be billed, 0 for no bound.
func New(path Path, in Input, params Params, maxUnits int64) (Payload, error) {
	params.Return = sortedSet(params.Return)
	params.Market, params.Source = plain(params.Market), plain(params.Source)
	in.SHA256, in.OriginSHA256, in.Clip = plain(in.SHA256), plain(in.OriginSHA256), plain(in.Clip)
	in.URL = strings.TrimSpace(in.URL)
	p := Payload{Version: PayloadVersion, Path: path, Input: in, Params: params, MaxUnits: maxUnits}
	p.Key = Key(path, in, params)
	if err := p.Validate(); err != nil {
		return Payload{}, fmt.Errorf("build %s task: %w", path, err)
	}
	return p, nil
}

// Task turns a payload into the asynq task of a group's queue, with the key as
// task id. Enqueuing it twice conflicts (asynq.ErrTaskIDConflict), which means
// it is queued already. An invalid payload or group is an error.
//
// asynq's Unique is not used: its lock runs out while a task still waits, and
// the task id is the better guard. Deadline is not used either, because each
// attempt past one fails at once.
func (p Payload) Task(group string) (*asynq.Task, error) {
	if err := errors.Join(p.Validate(), ValidateGroup(group)); err != nil {
		return nil, fmt.Errorf("make %s task: %w", p.Path, err)
	}
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
