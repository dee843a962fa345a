package admission

import (
	"context"
	"fmt"
	"strings"
	"time"

	"reprise/tasks"
)

// TaskState reads what one task waits for: its record and permit, the sources of
// its path, its queue's pause reasons. It changes nothing. A key nobody has
// admitted yet has an empty record.
func (g *Gates) TaskState(ctx context.Context, key string) (TaskState, error) {
	name, _, _ := strings.Cut(key, "_")
	path, err := tasks.ParsePath(name)
	if err != nil {
		return TaskState{}, fmt.Errorf("peek at %q: %w", key, err)
	}
	hashes, now, expiry, err := g.read(ctx, key, "j:"+key)
	if err != nil {
		return TaskState{}, err
	}
	j := hashes[0]
	s := TaskState{
		Key: key, Path: path, Group: j["grp"], Record: recordOf(j), AttemptID: j["a"], Source: j["src"],
		InFlight: expiry.After(now) && j["a"] != "",
	}
	if s.InFlight {
		s.Until = expiry
	}
	if s.AttemptID != "" {
		s.Since, s.Units, s.Probe = j.moment("at"), j.int("units"), j.int("probe") == 1
	}
	if s.State, err = g.snapshot(ctx, func(p tasks.Path) bool { return p == path }); err != nil {
		return TaskState{}, err
	}
	if s.Pause, err = g.Pauses().State(ctx, path.Queue(s.Group)); err != nil {
		return TaskState{}, err
	}
	return s, nil
}

// recordOf reads a record as Redis holds it.
func recordOf(j hash) tasks.AttemptRecord {
	return tasks.AttemptRecord{
		Generation: j.int("gen"), Counted: int(j.int("counted")), PossiblyBilled: int(j.int("pb")), Streak: int(j.int("streak")),
		SameOutcome: int(j.int("same")), Throttles: int(j.int("thr")), LastOutcome: tasks.Outcome(j["last"]),
		Spent: time.Duration(j.int("spent")) * time.Millisecond, FirstFailure: j.moment("ff"),
	}
}
