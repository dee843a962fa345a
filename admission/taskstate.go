package admission

import (
	"context"
	"fmt"
	"strings"
	"time"

	"reprise/tasks"
)

// TaskState is what admission knows of one task.
type TaskState struct {
	Key       string
	Path      tasks.Path
	Group     string              // of the last attempt; empty = none or no attempt yet
	Record    tasks.AttemptRecord // after all settled attempts; PossiblyBilled includes the attempt in flight
	InFlight  bool
	Until     time.Time // when the permit ends unless it is renewed
	AttemptID string    // of the unsettled attempt; empty = none
	Source    string    // of the last attempt
	Since     time.Time // when the unsettled attempt was admitted
	Units     int64     // that it reserved
	Probe     bool      // it is the half-open probe of its source
	State     State     // with the sources of the task's path only
}

// TaskState returns a task's record and permit, and the state of its path's sources. A key that was never admitted has
// an empty record.
func (g *Gates) TaskState(ctx context.Context, key string) (TaskState, error) {
	name, _, _ := strings.Cut(key, "_")
	path, err := tasks.ParsePath(name)
	if err != nil {
		return TaskState{}, fmt.Errorf("read the state of task %q: %w", key, err)
	}
	r, err := g.readState(ctx, key)
	if err != nil {
		return TaskState{}, err
	}
	rec := r.Record
	s := TaskState{
		Key: key, Path: path, Group: rec.Group, Record: rec.attempts(), AttemptID: rec.Attempt, Source: rec.Source,
		InFlight: r.PermitWait > 0 && rec.Attempt != "",
	}
	if s.InFlight {
		s.Until = moment(r.Now + r.PermitWait)
	}
	if s.AttemptID != "" {
		s.Since, s.Units, s.Probe = moment(rec.AdmittedAt), rec.Units, rec.Probe
	}
	s.State, err = g.state(ctx, func(p tasks.Path) bool { return p == path })
	return s, err
}
