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

// The asynq options of every task.
const (
	// MaxRetry is far above every budget, because retrypolicy decides when a task ends. asynq archives even a snoozed
	// task once Retried ≥ MaxRetry (asynq processor.go handleFailedMessage).
	MaxRetry = math.MaxInt32 / 2
	// Retention keeps the id of a finished task in use, so an enqueue that is repeated after a lost reply does not run
	// the task again.
	Retention = 24 * time.Hour
	// SlotWait is the longest time that a delivery waits in its slot for a gate.
	SlotWait = time.Minute
	// TimeoutMargin is the part of Timeout for settling the call.
	TimeoutMargin = 90 * time.Second
)

// Timeout returns the asynq Timeout of a path: call timeout + slot wait + margin. The handler returns before asynq
// cancels it.
func (p Path) Timeout() time.Duration { return p.CallTimeout() + SlotWait + TimeoutMargin }

// New builds the payload of a task. It trims names and hashes and puts them into lower case, sorts the providers, sets
// version and key, and validates. maxUnits is the largest number of units that one call may cost; 0 = no bound.
func New(path Path, in Input, params Params, maxUnits int64) (Payload, error) {
	params.Return = sortedSet(params.Return)
	params.Market, params.Source = plain(params.Market), plain(params.Source)
	in.SHA256, in.OriginSHA256, in.Clip = plain(in.SHA256), plain(in.OriginSHA256), plain(in.Clip)
	in.URL = strings.TrimSpace(in.URL)
	p := Payload{Version: PayloadVersion, Path: path, Input: in, Params: params, MaxUnits: maxUnits}
	p.Key = Key(path, in, params)
	if err := p.Validate(); err != nil {
		return Payload{}, err
	}
	return p, nil
}

// Task returns the asynq task for a group's queue, with the key as task id. A second enqueue fails with
// asynq.ErrTaskIDConflict, because the task is queued already. An invalid payload or group is an error.
//
// asynq's Unique is not used, because its lock can expire while the task still waits. Deadline is not used, because
// every attempt after it fails at once.
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
