package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ReasonManual is a person's pause. Automatic ones begin with AutoReason and
// name the gate: "auto:halt". They never undo each other (R19).
const (
	ReasonManual = "manual"
	AutoReason   = "auto:"
)

// overrideFor is how long automatic reasons are kept out of a queue a person
// opened elsewhere (asynq's page): long enough to see what happens, short
// enough that a shut source does not drain the backlog into retries.
const overrideFor = 30 * time.Second

// PauseReason is one member of a queue's set.
type PauseReason struct {
	Name     string    // manual or auto:<gate>
	Until    time.Time // it ends by itself; zero = never
	At       time.Time // since when
	By       string    // who
	Evidence string    // why, for people; no secrets
}

// PauseState is why a queue is paused, and what was last made of asynq's flag.
type PauseState struct {
	Reasons  []PauseReason // sorted by name; empty = open
	Override time.Time     // until then automatic reasons are kept out; zero = no

	flag    string
	version int64
}

// Paused says whether the queue should be paused.
func (s PauseState) Paused() bool { return len(s.Reasons) > 0 }

// Has says whether the reason is in the set.
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

// Pauses is the pause reasons under the gates' prefix.
func (g *Gates) Pauses() *Pauses { return NewPauses(g.rdb, g.cfg.Prefix) }

// Add puts a reason into the set, or changes when it ends. Until in the past
// or zero means it never ends by itself. Automatic reasons are not added while
// a person's override runs: changed is false then, as when nothing is new.
func (p *Pauses) Add(ctx context.Context, queue string, r PauseReason) (state PauseState, changed bool, err error) {
	if r.Name != ReasonManual && !strings.HasPrefix(r.Name, AutoReason) {
		return PauseState{}, false, fmt.Errorf("pause %s: reason %q: want manual or auto:…", queue, r.Name)
	}
	wait := int64(0)
	if !r.Until.IsZero() {
		wait = max(1, time.Until(r.Until).Milliseconds())
	}
	return p.do(ctx, queue, "add", r.Name, wait, oneWord(r.By), strings.ToValidUTF8(r.Evidence, "?"))
}

// Remove takes a reason out of the set: its name, "auto:*" or "*".
func (p *Pauses) Remove(ctx context.Context, queue, name string) (state PauseState, changed bool, err error) {
	return p.do(ctx, queue, "remove", name)
}

// State reads the set. Reasons whose time is over are gone.
func (p *Pauses) State(ctx context.Context, queue string) (PauseState, error) {
	s, _, err := p.do(ctx, queue, "read")
	return s, err
}

func oneWord(s string) string { return strings.Join(strings.Fields(s), "_") }

func (p *Pauses) do(ctx context.Context, queue, what string, args ...any) (PauseState, bool, error) {
	all := append([]any{p.prefix, queue, what}, args...)
	reply, err := pauseScript.Run(ctx, p.rdb, []string{p.prefix + "g"}, all...).Slice()
	if err != nil {
		return PauseState{}, false, fmt.Errorf("%s pause reasons of %s: %w: %w", what, queue, ErrUnavailable, err)
	}
	f := reader{list: reply}
	f.int() // now
	s := PauseState{flag: f.text(), version: f.int(), Override: f.moment()}
	changed := f.bool()
	list := reader{list: asList(f.next())}
	for len(list.list) > 0 && !list.bad {
		s.Reasons = append(s.Reasons, PauseReason{Name: list.text(), Until: list.moment(), At: list.moment(), By: list.text(), Evidence: list.text()})
	}
	if f.bad || list.bad {
		return PauseState{}, false, unreadable()
	}
	return s, changed, nil
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
	ActionAdopt   Action = "adopt"   // it was set elsewhere: a person's pause
	ActionDrop    Action = "drop"    // it was cleared elsewhere: a person opened the queue
)

// Reconcile decides, from the set and from asynq's flag read after the set.
// The recorded flag state tells a change made elsewhere from our own one that
// a crash cut short: the intent is written before the flag is touched.
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
	flagOff       = "0"
	flagOn        = "1"
	flagPausing   = "pausing"
	flagUnpausing = "unpausing"
)

// ErrRaced says that somebody changed the set in between: look again.
var ErrRaced = errors.New("pause reasons changed meanwhile")

// Apply carries an action out. state is what Reconcile saw. Repeating it after
// an error is safe; ErrRaced means that it was nobody's turn.
func (p *Pauses) Apply(ctx context.Context, queue string, state PauseState, action Action, asynq FlagSetter) error {
	switch action {
	case ActionAdopt:
		return p.move(ctx, queue, &state, flagOn, "manual")
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
	switch { // what a crash cut short turned out done
	case state.flag == flagPausing && state.Paused():
		return p.move(ctx, queue, &state, flagOn, "keep")
	case state.flag == flagUnpausing && !state.Paused():
		return p.move(ctx, queue, &state, flagOff, "keep")
	}
	return nil
}

func (p *Pauses) move(ctx context.Context, queue string, state *PauseState, flag, set string) error {
	next, changed, err := p.do(ctx, queue, "apply", state.version, flag, set, overrideFor.Milliseconds(), "asynq")
	if err != nil {
		return err
	}
	if !changed || next.version != state.version+1 || next.flag != flag {
		return fmt.Errorf("reconcile queue %s: %w", queue, ErrRaced)
	}
	*state = next
	return nil
}
