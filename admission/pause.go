package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ReasonManual is an operator's pause. Automatic reasons begin with AutoReason and name
// the gate: "auto:halt". Neither kind undoes the other.
const (
	ReasonManual = "manual"
	AutoReason   = "auto:"
)

// overrideFor is how long automatic reasons are kept out of a queue that an operator
// unpaused elsewhere (on asynq's web page): long enough to watch what happens, short
// enough that a blocked source does not drain the backlog into retries.
const overrideFor = 30 * time.Second

// PauseReason is one member of a queue's set.
type PauseReason struct {
	Name     string    // manual or auto:<gate>
	Until    time.Time // when it ends by itself; zero = never
	At       time.Time // since when
	By       string    // who
	Evidence string    // why, for display; no secrets
}

// PauseState is why a queue is paused, and how asynq's flag was set last.
type PauseState struct {
	Reasons  []PauseReason // sorted by name; empty = open
	Override time.Time     // until then automatic reasons are kept out; zero = they are not

	flag    string
	version int64
}

// Paused reports whether the queue should be paused.
func (s PauseState) Paused() bool { return len(s.Reasons) > 0 }

// Has reports whether the reason is in the set.
func (s PauseState) Has(name string) bool {
	for _, r := range s.Reasons {
		if r.Name == name {
			return true
		}
	}
	return false
}

// Pauses keeps the pause reasons of queues in Redis. Safe for concurrent use,
// by any number of processes.
type Pauses struct {
	rdb    redis.UniversalClient
	prefix string
}

// NewPauses works on the keys under prefix (Config.Prefix).
func NewPauses(rdb redis.UniversalClient, prefix string) *Pauses {
	return &Pauses{rdb: rdb, prefix: prefix}
}

// Pauses are the pause reasons under the gates' prefix.
func (g *Gates) Pauses() *Pauses { return NewPauses(g.rdb, g.cfg.Prefix) }

// Add puts a reason into the set, or changes when it ends. Until in the past
// or zero means it never ends by itself. Automatic reasons are not added while an
// operator keeps them out (PauseState.Override): changed is false then, as when the
// set has the reason already.
func (p *Pauses) Add(ctx context.Context, queue string, r PauseReason) (state PauseState, changed bool, err error) {
	if r.Name != ReasonManual && !strings.HasPrefix(r.Name, AutoReason) {
		return PauseState{}, false, fmt.Errorf("pause %s: reason %q must be manual or auto:…", queue, r.Name)
	}
	wait := int64(0)
	if !r.Until.IsZero() {
		wait = max(1, time.Until(r.Until).Milliseconds())
	}
	return p.call(ctx, queue, "add", map[string]any{"reason": r.Name, "ends_in_ms": wait, "by": oneLine(r.By), "evidence": r.Evidence})
}

// Remove takes a reason out of the set: its name, "auto:*" or "*".
func (p *Pauses) Remove(ctx context.Context, queue, name string) (state PauseState, changed bool, err error) {
	return p.call(ctx, queue, "remove", map[string]any{"reason": name})
}

// State reads the set. Reasons that have ended are not in it.
func (p *Pauses) State(ctx context.Context, queue string) (PauseState, error) {
	s, _, err := p.call(ctx, queue, "read", map[string]any{})
	return s, err
}

func (p *Pauses) call(ctx context.Context, queue, action string, request map[string]any) (PauseState, bool, error) {
	request["queue"], request["action"] = queue, action
	var reply struct {
		Flag     string `json:"flag"`
		Version  int64  `json:"version"`
		Override int64  `json:"override_until"`
		Changed  bool   `json:"changed"`
		Reasons  []struct {
			Name      string `json:"name"`
			ExpiresAt int64  `json:"expires_at"`
			Since     int64  `json:"since"`
			By        string `json:"by"`
			Evidence  string `json:"evidence"`
		} `json:"reasons"`
	}
	if err := (runner{p.rdb, p.prefix}).run(ctx, pauseScript, request, &reply); err != nil {
		return PauseState{}, false, fmt.Errorf("%s pause reasons of %s: %w", action, queue, err)
	}
	s := PauseState{flag: reply.Flag, version: reply.Version, Override: moment(reply.Override)}
	for _, r := range reply.Reasons {
		s.Reasons = append(s.Reasons, PauseReason{Name: r.Name, Until: moment(r.ExpiresAt), At: moment(r.Since), By: r.By, Evidence: r.Evidence})
	}
	return s, reply.Changed, nil
}

// FlagSetter is what Reconcile needs of asynq's Inspector.
type FlagSetter interface {
	PauseQueue(queue string) error
	UnpauseQueue(queue string) error
}

// Action is what has to be done about asynq's flag.
type Action string

// The closed set of actions.
const (
	ActionNone    Action = "none"
	ActionPause   Action = "pause"   // set asynq's flag
	ActionUnpause Action = "unpause" // clear it
	ActionAdopt   Action = "adopt"   // it was set elsewhere: add a manual reason
	ActionDrop    Action = "drop"    // it was cleared elsewhere: an operator opened the queue, drop the reasons
)

// Reconcile decides from the set and from asynq's flag, read after the set. The
// intent is recorded before the flag is changed, so that a change made elsewhere
// differs from one of ours that a crash interrupted.
func Reconcile(s PauseState, flag bool) Action {
	switch {
	case s.flag == flagPausing && flag, s.flag == flagUnpausing && !flag:
		if flag == s.Paused() {
			return ActionNone // confirm
		}
	case s.flag == flagOff && flag:
		return ActionAdopt
	case s.flag == flagOn && !flag:
		return ActionDrop
	}
	switch {
	case s.Paused() && !flag:
		return ActionPause
	case !s.Paused() && flag:
		return ActionUnpause
	}
	return ActionNone
}

const (
	flagOff       = "off"
	flagOn        = "on"
	flagPausing   = "pausing"
	flagUnpausing = "unpausing"
)

// ErrRaced says that another worker changed the set meanwhile: read it again.
var ErrRaced = errors.New("pause reasons changed meanwhile")

// Apply carries an action out. state is what Reconcile decided from. Repeating it
// after an error is safe; after ErrRaced the state has to be read again.
func (p *Pauses) Apply(ctx context.Context, queue string, state PauseState, action Action, asynq FlagSetter) error {
	switch action {
	case ActionAdopt:
		return p.move(ctx, queue, &state, flagOn, "adopt")
	case ActionDrop:
		return p.move(ctx, queue, &state, flagOff, "drop")
	case ActionPause:
		if err := p.move(ctx, queue, &state, flagPausing, "keep"); err != nil {
			return err
		}
		if err := asynq.PauseQueue(queue); err != nil {
			return fmt.Errorf("pause queue %s: %w", queue, err)
		}
		return p.move(ctx, queue, &state, flagOn, "keep")
	case ActionUnpause:
		if err := p.move(ctx, queue, &state, flagUnpausing, "keep"); err != nil {
			return err
		}
		if err := asynq.UnpauseQueue(queue); err != nil {
			return fmt.Errorf("unpause queue %s: %w", queue, err)
		}
		return p.move(ctx, queue, &state, flagOff, "keep")
	case ActionNone:
	}
	switch { // the change was made, but a crash prevented its confirmation
	case state.flag == flagPausing && state.Paused():
		return p.move(ctx, queue, &state, flagOn, "keep")
	case state.flag == flagUnpausing && !state.Paused():
		return p.move(ctx, queue, &state, flagOff, "keep")
	}
	return nil
}

func (p *Pauses) move(ctx context.Context, queue string, state *PauseState, flag, set string) error {
	next, changed, err := p.call(ctx, queue, "apply", map[string]any{
		"version": state.version, "flag": flag, "reasons": set, "override_ms": overrideFor.Milliseconds(), "by": "asynq",
	})
	if err != nil {
		return err
	}
	if !changed || next.version != state.version+1 || next.flag != flag {
		return fmt.Errorf("reconcile queue %s: %w", queue, ErrRaced)
	}
	*state = next
	return nil
}
