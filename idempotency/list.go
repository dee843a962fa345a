package idempotency

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Filter selects uploads. Zero fields select all.
type Filter struct {
	States   []State
	Source   string
	AudioIDs []int64
	Verify   Verify
	// SentFrom and SentBefore limit sent_at. Each of them excludes keys that were not sent.
	SentFrom, SentBefore time.Time
	After                string // the last key of the page before: keys rise
	Limit                int    // 0 = 1000
}

// List returns keys in their current generation, sorted by key.
func (l *Ledger) List(ctx context.Context, f Filter) ([]Entry, error) {
	where, args := f.conditions()
	limit := f.Limit
	if limit <= 0 {
		limit = 1000
	}
	query := fmt.Sprintf("%s%s ORDER BY k.key LIMIT $%d", entryQuery, where, len(args)+1)
	entries, err := all(ctx, l.db, scanEntry, query, append(args, limit)...)
	return entries, failed("list uploads", err)
}

// Count returns how many keys are in each state of their current generation. It ignores the filter's After and Limit.
func (l *Ledger) Count(ctx context.Context, f Filter) (map[State]int64, error) {
	f.After = ""
	where, args := f.conditions()
	counts := map[State]int64{}
	query := `SELECT COALESCE(u.state, 'free'), COUNT(*) FROM upload_key k
		LEFT JOIN upload u ON u.key = k.key AND u.generation = k.generation` + where + ` GROUP BY 1`
	_, err := all(ctx, l.db, func(row scanner) (n int64, err error) {
		var state State
		err = row.Scan(&state, &n)
		counts[state] = n
		return n, err
	}, query, args...)
	return counts, failed("count uploads", err)
}

// Detail is everything that the ledger stores about a key.
type Detail struct {
	Status UploadStatus
	Sends  []Send // one per generation that was sent, oldest first
	Trail  []Audit
}

// Show returns the details of a key. It fails with ErrUnknownKey for an unknown key.
func (l *Ledger) Show(ctx context.Context, key string) (Detail, error) {
	var d Detail
	var err error
	if d.Status, err = l.known(ctx, l.db, key); err != nil {
		return Detail{}, failed("show an upload", err)
	}
	d.Sends, err = all(ctx, l.db, func(row scanner) (Send, error) { return scanSend(row) },
		`SELECT `+sendColumns+` FROM upload u WHERE u.key = $1 ORDER BY u.generation`, key)
	if err != nil {
		return Detail{}, failed("show an upload", err)
	}
	d.Trail, err = l.Trail(ctx, key)
	return d, err
}

// conditions returns the WHERE clause of a filter and its arguments.
func (f Filter) conditions() (where string, args []any) {
	var terms []string
	term := func(condition string, values ...any) {
		places := make([]string, len(values))
		for i, v := range values {
			args = append(args, v)
			places[i] = fmt.Sprintf("$%d", len(args))
		}
		terms = append(terms, strings.Replace(condition, "?", strings.Join(places, ", "), 1))
	}
	if len(f.States) > 0 {
		var states []any
		for _, s := range f.States {
			states = append(states, string(s))
		}
		term("COALESCE(u.state, 'free') IN (?)", states...)
	}
	if f.Source != "" {
		term("k.source = ?", f.Source)
	}
	if len(f.AudioIDs) > 0 {
		var ids []any
		for _, id := range f.AudioIDs {
			ids = append(ids, id)
		}
		term("k.audio_id IN (?)", ids...)
	}
	if f.Verify != "" {
		term("u.verify = ?", string(f.Verify))
	}
	if !f.SentFrom.IsZero() {
		term("u.sent_at >= ?", f.SentFrom.UnixMilli())
	}
	if !f.SentBefore.IsZero() {
		term("u.sent_at < ?", f.SentBefore.UnixMilli())
	}
	if f.After != "" {
		term("k.key > ?", f.After)
	}
	if len(terms) > 0 {
		where = " WHERE " + strings.Join(terms, " AND ")
	}
	return where, args
}
