package ops

import (
	"context"
	"errors"

	"reprise/store"
	"reprise/store/identity"
)

// Stores says which SQL store the queue in Redis belongs to.
type Stores struct{ *base }

// StoreReport compares the open store with the one that Redis remembers.
type StoreReport struct {
	Store      store.Identity  `json:"store"`
	Remembered *store.Identity `json:"remembered,omitempty"` // nil: Redis remembers none
	Problem    string          `json:"problem,omitempty"`    // why processes with this store are refused
}

// Report compares the identities and changes nothing.
func (s *Stores) Report(ctx context.Context) (StoreReport, error) {
	var r StoreReport
	err := identity.Check(ctx, s.Redis, store.MarksOf(s.Store))
	if mismatch, ok := errors.AsType[*identity.MismatchError](err); ok {
		r.Problem = mismatch.Error()
	} else if err != nil {
		return r, err
	}
	remembered, err := identity.Read(ctx, s.Redis)
	if err != nil {
		return r, err
	}
	if remembered.ID != "" {
		r.Remembered = &remembered
	}
	r.Store, err = store.MarksOf(s.Store).Identity(ctx)
	return r, err
}

// Adopt makes Redis belong to the open store, unless it does already. It returns the report from before.
func (s *Stores) Adopt(ctx context.Context) (StoreReport, error) {
	r, err := s.Report(ctx)
	if err == nil && r.Problem != "" {
		_, err = identity.Adopt(ctx, s.Redis, store.MarksOf(s.Store))
	}
	return r, err
}
