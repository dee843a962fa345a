package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ReasonManual is an operator's pause. Automatic reasons are AutoReason and the gate: "auto:halt". Removing one kind
// keeps the other.
const (
	ReasonManual = "manual"
	AutoReason   = "auto:"
)

// overrideFor is how long no automatic pause reason is added after an operator resumes the queue outside Reprise
// (in asynq's web UI). It is long enough for the operator to see the effect, and short enough that a blocked source
// does not turn the whole backlog into retries.
const overrideFor = 30 * time.Second

// PauseReason is one reason why a queue is paused.
type PauseReason struct {
	Name     string    // manual or auto:<gate>
	Until    time.Time // when it ends by itself; zero = never
	At       time.Time // when it was added
	By       string    // who added it
	Evidence string    // why, for display; no secrets
}

// PauseState is why a queue is paused.
type PauseState struct {
	Reasons  []PauseReason // sorted by name; empty = not paused
	Override time.Time     // automatic reasons are not added before this time; zero = they are
	Flag     PauseFlag     // asynq's pause flag as Reprise stored it last

	version int64
}

// Paused reports whether the queue has a pause reason.
func (s PauseState) Paused() bool { return len(s.Reasons) > 0 }

// Has reports whether the queue has the reason with this name.
func (s PauseState) Has(name string) bool {
	return slices.ContainsFunc(s.Reasons, func(r PauseReason) bool { return r.Name == name })
}

// PauseFlag is what Reprise stores about asynq's pause flag. The intent is stored before the flag is changed: after a
// crash, the change can be told from a change outside Reprise.
type PauseFlag string

// The closed set of stored flags.
const (
	FlagOff       PauseFlag = "off"
	FlagOn        PauseFlag = "on"
	FlagPausing   PauseFlag = "pausing"
	FlagUnpausing PauseFlag = "unpausing"
)

// ReasonsChange is what StoreFlag does to the reasons.
type ReasonsChange string

// The closed set of changes.
const (
	ReasonsKeep  ReasonsChange = "keep"
	ReasonsAdopt ReasonsChange = "adopt" // add a manual reason
	ReasonsDrop  ReasonsChange = "drop"  // remove all, and add no automatic reason for 30 s
)

// ErrRaced means that another process changed the reasons since they were read.
var ErrRaced = errors.New("pause reasons were changed concurrently")

// Pauses stores the pause reasons of queues in Redis. It is safe for concurrent use by any number of processes.
type Pauses struct{ scripts }

// NewPauses returns a Pauses whose Redis keys start with prefix (Config.Prefix).
func NewPauses(rdb redis.UniversalClient, prefix string) *Pauses {
	return &Pauses{scripts{rdb, prefix}}
}

// Add adds a reason, or changes when it ends. A zero Until means that it never ends by itself. changed is false if the
// queue has the same reason already, or if the reason is automatic and comes before PauseState.Override.
func (p *Pauses) Add(ctx context.Context, queue string, r PauseReason) (state PauseState, changed bool, err error) {
	if r.Name != ReasonManual && !strings.HasPrefix(r.Name, AutoReason) {
		return PauseState{}, false, fmt.Errorf("pause queue %s: the reason %q must be %q or begin with %q", queue, r.Name, ReasonManual, AutoReason)
	}
	wait := int64(0)
	if !r.Until.IsZero() {
		wait = max(1, time.Until(r.Until).Milliseconds())
	}
	return p.call(ctx, queue, "add", map[string]any{"reason": r.Name, "ends_in_ms": wait, "by": oneLine(r.By), "evidence": r.Evidence})
}

// Remove removes reasons: a name, "auto:*" or "*".
func (p *Pauses) Remove(ctx context.Context, queue, name string) (state PauseState, changed bool, err error) {
	return p.call(ctx, queue, "remove", map[string]any{"reason": name})
}

// State returns the reasons that have not ended.
func (p *Pauses) State(ctx context.Context, queue string) (PauseState, error) {
	s, _, err := p.call(ctx, queue, "read", map[string]any{})
	return s, err
}

// StoreFlag stores asynq's flag and changes the reasons. It updates state, which must be the state that the caller read
// last. It fails with ErrRaced if the stored state is a later one.
func (p *Pauses) StoreFlag(ctx context.Context, queue string, state *PauseState, flag PauseFlag, reasons ReasonsChange) error {
	next, changed, err := p.call(ctx, queue, "flag", map[string]any{
		"version": state.version, "flag": flag, "reasons": reasons, "override_ms": overrideFor.Milliseconds(), "by": "asynq",
	})
	if err != nil {
		return err
	}
	if !changed || next.version != state.version+1 {
		return fmt.Errorf("store the pause flag of queue %s: %w", queue, ErrRaced)
	}
	*state = next
	return nil
}

func (p *Pauses) call(ctx context.Context, queue, action string, request map[string]any) (PauseState, bool, error) {
	request["queue"], request["action"] = queue, action
	var reply struct {
		Flag     PauseFlag `json:"flag"`
		Version  int64     `json:"version"`
		Override int64     `json:"override_until"`
		Changed  bool      `json:"changed"`
		Reasons  []struct {
			Name      string `json:"name"`
			ExpiresAt int64  `json:"expires_at"`
			Since     int64  `json:"since"`
			By        string `json:"by"`
			Evidence  string `json:"evidence"`
		} `json:"reasons"`
	}
	if err := p.run(ctx, pauseScript, request, &reply); err != nil {
		return PauseState{}, false, fmt.Errorf("%s pause reasons of queue %s: %w", action, queue, err)
	}
	s := PauseState{Flag: reply.Flag, version: reply.Version, Override: moment(reply.Override)}
	for _, r := range reply.Reasons {
		s.Reasons = append(s.Reasons, PauseReason{Name: r.Name, Until: moment(r.ExpiresAt), At: moment(r.Since), By: r.By, Evidence: r.Evidence})
	}
	return s, reply.Changed, nil
}
