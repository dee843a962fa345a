package idempotency

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Filter chooses uploads. Zero fields choose all.
type Filter struct {
	States   []State
	Source   string
	AudioIDs []int64
	Verify   Verify
	// SentFrom and SentBefore bound sent_at; either leaves out what was not sent.
	SentFrom, SentBefore time.Time
	// After is the last key of the page before: keys rise.
	After string
	Limit int // 0 = 1000
}

// Entry is a key in its current generation.
type Entry struct {
	Key        string
	Source     string
	AudioID    int64
	SHA256     string
	Generation int64
	State      State
	Since      time.Time // first claimed or sent
	Owner      string    // the key that owns the slot; another key has replaced this one
	Send       Send      // zero while Free
}

// List returns keys in their current generation, in the order of the keys.
func (l *Ledger) List(ctx context.Context, f Filter) ([]Entry, error) {
	where, args := f.sql()
	//nolint:gosec // constants and placeholders; values are bound
	query := `SELECT k.key, k.source, k.audio_id, k.sha256, k.generation, k.since,
		COALESCE(s.key, ''), ` + maybeColumns + ` FROM upload_key k
		LEFT JOIN upload u ON u.key = k.key AND u.generation = k.generation
		LEFT JOIN upload_slot s ON s.source = k.source AND s.audio_id = k.audio_id` + where
	rows, err := l.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list uploads: %w", err)
	}
	defer rows.Close()
	var out []Entry
	for rows.Next() {
		e := Entry{State: Free}
		var since int64
		e.Send, err = scanSend(rows, &e.Key, &e.Source, &e.AudioID, &e.SHA256, &e.Generation, &since, &e.Owner)
		if err != nil {
			return nil, fmt.Errorf("list uploads: %w", err)
		}
		e.Since = instant(since)
		if e.Send.State != "" {
			e.State = e.Send.State
		}
		out = append(out, e)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list uploads: %w", err)
	}
	return out, nil
}

// Detail is everything that the ledger stores about a key.
type Detail struct {
	Status  UploadStatus
	Source  string
	AudioID int64
	SHA256  string
	Since   time.Time
	Owner   Slot
	Sends   []Send // one per generation that was sent, oldest first
	Trail   []Audit
}

// Show returns the details of a key. The error of an unknown key wraps
// ErrUnknownKey.
func (l *Ledger) Show(ctx context.Context, key string) (Detail, error) {
	d, err := l.show(ctx, key)
	if err != nil {
		return Detail{}, fmt.Errorf("show an upload: %w", err)
	}
	return d, nil
}

func (l *Ledger) show(ctx context.Context, key string) (Detail, error) {
	k, found, err := keyOf(ctx, l.db, key)
	switch {
	case err != nil:
		return Detail{}, err
	case !found:
		return Detail{}, fmt.Errorf("key %s: %w", key, ErrUnknownKey)
	}
	d := Detail{Source: k.source, AudioID: k.audioID, SHA256: k.sha, Since: k.since}
	if d.Status, err = l.look(ctx, l.db, key); err != nil {
		return d, err
	}
	if d.Owner, _, err = slotOf(ctx, l.db, k.source, k.audioID); err != nil {
		return d, err
	}
	if d.Sends, err = sendsOf(ctx, l.db, key); err != nil {
		return d, err
	}
	d.Trail, err = l.Trail(ctx, key)
	return d, err
}

func sendsOf(ctx context.Context, q querier, key string) ([]Send, error) {
	rows, err := q.QueryContext(ctx, `SELECT `+sendColumns+` FROM upload u WHERE u.key = $1 ORDER BY u.generation`, key)
	if err != nil {
		return nil, fmt.Errorf("read the sends: %w", err)
	}
	defer rows.Close()
	var out []Send
	for rows.Next() {
		s, err := scanSend(rows)
		if err != nil {
			return nil, fmt.Errorf("read the sends: %w", err)
		}
		out = append(out, s)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the sends: %w", err)
	}
	return out, nil
}

// sql is the conditions with an order and a limit.
func (f Filter) sql() (string, []any) {
	where, args := f.conditions()
	limit := f.Limit
	if limit <= 0 {
		limit = 1000
	}
	args = append(args, limit)
	return fmt.Sprintf("%s ORDER BY k.key LIMIT $%d", where, len(args)), args
}

func (f Filter) conditions() (where string, args []any) {
	var terms []string
	bind := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	term := func(condition string) { terms = append(terms, condition) }
	if len(f.States) > 0 {
		var in []string
		for _, s := range f.States {
			in = append(in, bind(string(s)))
		}
		term("COALESCE(u.state, 'free') IN (" + strings.Join(in, ", ") + ")")
	}
	if f.Source != "" {
		term("k.source = " + bind(f.Source))
	}
	if len(f.AudioIDs) > 0 {
		var in []string
		for _, id := range f.AudioIDs {
			in = append(in, bind(id))
		}
		term("k.audio_id IN (" + strings.Join(in, ", ") + ")")
	}
	if f.Verify != "" {
		term("u.verify = " + bind(string(f.Verify)))
	}
	if !f.SentFrom.IsZero() {
		term("u.sent_at >= " + bind(f.SentFrom.UnixMilli()))
	}
	if !f.SentBefore.IsZero() {
		term("u.sent_at < " + bind(f.SentBefore.UnixMilli()))
	}
	if f.After != "" {
		term("k.key > " + bind(f.After))
	}
	if len(terms) > 0 {
		where = " WHERE " + strings.Join(terms, " AND ")
	}
	return where, args
}
