package ops

import (
	"context"
	"errors"
	"slices"
	"strings"

	"reprise/idempotency"
	"reprise/intake"
	"reprise/store"
)

// ResolveRequest is a decision about uncertain uploads.
type ResolveRequest struct {
	Keys    []string               // may be shortened
	As      idempotency.Resolution // settled: it arrived; retry: it is sent again and billed again
	By, Why string                 // both required, stored permanently
}

// Resolved is what a decision about one upload changed.
type Resolved struct {
	Key        string `json:"key"`
	Generation int64  `json:"generation"`
	Already    bool   `json:"already"` // it had been decided so before
	Queued     bool   `json:"queued"`  // its task runs again to act on the decision
	Error      string `json:"error,omitempty"`
}

// Check returns an InputError if As or Why is missing, or As is unknown.
func (r ResolveRequest) Check() error {
	ways := []idempotency.Resolution{idempotency.AsSettled, idempotency.AsRetry}
	switch {
	case r.As != "" && !slices.Contains(ways, r.As):
		return among("as", r.As, ways)
	case r.As == "":
		return invalid("settled or retry (as) is required")
	case strings.TrimSpace(r.Why) == "":
		return invalid("a reason (why) is required: it is stored with the decision")
	}
	return nil
}

// Resolve decides about uploads one by one, and queues their tasks to act on the decision. An upload that cannot be
// resolved has an Error and does not stop the others. When ctx ends, the remaining uploads are left out. Repeating a
// decision is harmless, and finishes one that a crash interrupted.
func (u *Uploads) Resolve(ctx context.Context, r ResolveRequest) ([]Resolved, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	keys, err := u.fullKeys(ctx, r.Keys)
	if err != nil {
		return nil, err
	}
	in, err := u.intake()
	if err != nil {
		return nil, err
	}
	out := []Resolved{}
	for _, key := range keys {
		if ctx.Err() != nil {
			return out, nil //nolint:nilerr // what was resolved is reported
		}
		one, err := u.resolveOne(ctx, in, key, r)
		if err != nil {
			return out, err
		}
		out = append(out, one)
	}
	return out, nil
}

func (u *Uploads) resolveOne(ctx context.Context, in *intake.Intake, key string, r ResolveRequest) (Resolved, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), oneTimeout)
	defer cancel()
	out := Resolved{Key: ShownName(key)}
	got, err := u.Ledger.Resolve(ctx, key, r.As, idempotency.Action{By: r.By, Why: r.Why, At: u.Now()})
	if err != nil {
		out.Error, err = u.refusal(err)
		return out, err
	}
	out.Generation, out.Already = got.Generation, got.Already
	_, err = in.Release(ctx, key)
	switch {
	case err == nil:
		out.Queued = true
	case errors.Is(err, intake.ErrNotReplayable), errors.Is(err, store.ErrUnknownKey): // the task waits already, or has its verdict
	case store.IsUnavailable(err):
		return out, err
	default:
		out.Error = "decided, but its task could not be queued; repeat the command: " + strings.TrimPrefix(err.Error(), "replay: ")
	}
	return out, nil
}

// refusal returns why the ledger refused a decision. Other errors are returned as they are.
func (u *Uploads) refusal(err error) (string, error) {
	early, isEarly := errors.AsType[*idempotency.TooEarlyError](err)
	_, notResolvable := errors.AsType[*idempotency.NotResolvableError](err)
	switch {
	case isEarly:
		return "too early: the earlier send may be in flight until " + u.times().Until(early.Until), nil
	case errors.Is(err, idempotency.ErrUnknownKey):
		return idempotency.ErrUnknownKey.Error(), nil
	case notResolvable:
		return strings.TrimPrefix(err.Error(), "resolve an upload: "), nil
	}
	return "", err
}
