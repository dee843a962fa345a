package admission

import (
	"context"
	"fmt"
	"strings"
	"time"

	"reprise/tasks"
)

// Peek reads what one task waits for: its record and permit, the sources of
// its path, its queue's pause reasons. It changes nothing. A key nobody has
// admitted yet has an empty record.
func (g *Gates) Peek(ctx context.Context, key string) (Snapshot, error) {
	name, _, _ := strings.Cut(key, "_")
	path, err := tasks.ParsePath(name)
	if err != nil {
		return Snapshot{}, fmt.Errorf("peek at %q: %w", key, err)
	}
	hashes, now, expiry, err := g.read(ctx, key, "j:"+key)
	if err != nil {
		return Snapshot{}, err
	}
	j := hashes[0]
	s := Snapshot{
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
		return Snapshot{}, err
	}
	if s.Pause, err = g.Pauses().State(ctx, path.Queue(s.Group)); err != nil {
		return Snapshot{}, err
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

// QueuesSnapshot reads the pause reasons of queues.
func (g *Gates) QueuesSnapshot(ctx context.Context, queues ...string) (map[string]PauseState, error) {
	out := make(map[string]PauseState, len(queues))
	for _, q := range queues {
		s, err := g.Pauses().State(ctx, q)
		if err != nil {
			return nil, err
		}
		out[q] = s
	}
	return out, nil
}
