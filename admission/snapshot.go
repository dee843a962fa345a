package admission

import (
	"context"
	"fmt"
	"time"
)

// read reads hashes as they are at one moment of Redis's clock, and when the
// key's permit ends (0 = none).
func (g *Gates) read(ctx context.Context, key string, names ...string) ([]hash, time.Time, time.Time, error) {
	args := []any{g.cfg.Prefix, key}
	for _, n := range names {
		args = append(args, n)
	}
	reply, err := g.run(ctx, peekScript, args)
	if err != nil {
		return nil, time.Time{}, time.Time{}, err
	}
	f := reader{list: reply}
	now, expiry := f.moment(), f.moment()
	if f.bad || len(f.list) != len(names) {
		return nil, time.Time{}, time.Time{}, fmt.Errorf("read admission state: %w: %w", ErrUnavailable, errReply)
	}
	hashes := make([]hash, len(names))
	for i := range names {
		hashes[i] = asHash(f.list[i])
	}
	return hashes, now, expiry, nil
}
