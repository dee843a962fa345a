package ops

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/idempotency"
	"reprise/internal/redistest"
	"reprise/store"
	"reprise/tasks"
)

var update = flag.Bool("update", false, "write the golden files")

// seededReports returns reports by name. They have zero and set times, empty and filled lists.
func seededReports(t *testing.T) map[string]any {
	t.Helper()
	ctx, rdb := t.Context(), redistest.DB(t)
	cfg := admission.DefaultConfig()
	cfg.Sources = []admission.SourceConfig{{Name: "main"}}
	cfg.Global.UnitsPerDay = 10
	cfg.Groups = map[string]admission.Group{"archive": {Ceiling: 0.7, UnitsPerMonth: 5}, "ugc": {}}
	g, err := admission.New(rdb, cfg)
	require.NoError(t, err)
	_, err = g.SeedLimits(ctx)
	require.NoError(t, err)
	_, err = g.Halt(ctx, admission.Halt{Source: "main", Path: tasks.Upload, Reason: "authentication", By: "ops"})
	require.NoError(t, err)
	sc := store.DefaultConfig()
	sc.URL = "sqlite:" + filepath.Join(t.TempDir(), "r.db")
	st, err := store.Open(ctx, sc)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	ledger, err := idempotency.New(ctx, st.DB(), idempotency.DefaultConfig())
	require.NoError(t, err)
	at := time.Now().Add(-time.Hour)
	for i, key := range []string{"upload_free", "upload_sent", "upload_uncertain"} {
		id := int64(i)
		_, err = ledger.Claim(ctx, idempotency.Claim{Source: "main", AudioID: id, Key: key, By: "ops", At: at})
		require.NoError(t, err)
		if i == 0 {
			continue
		}
		_, err = ledger.Latch(ctx, idempotency.LatchRequest{
			Key: key, AttemptID: "attempt-" + key, Source: "main", AudioID: id, Timeout: time.Minute, At: at,
		})
		require.NoError(t, err)
	}
	_, err = ledger.Conclude(ctx, "attempt-upload_uncertain", idempotency.Conclusion{
		Effect: tasks.LatchUncertain, Outcome: tasks.Unavailable, Reason: "unavailable: HTTP 503", RequestID: "req-77", At: at,
	})
	require.NoError(t, err)
	_, err = ledger.Resolve(ctx, "upload_uncertain", idempotency.AsSettled, idempotency.Action{By: "alice", Why: "found", At: at})
	require.NoError(t, err)
	in := tasks.Input{Kind: tasks.URLInput, URL: "https://example.com/a.mp3"}
	p, err := tasks.New(tasks.Recognize, in, tasks.Params{}, 0)
	require.NoError(t, err)
	task, err := p.Task("")
	require.NoError(t, err)
	_, err = st.Register(ctx, []store.Submission{
		{ID: "1", Batch: "b", Key: p.Key, Path: p.Path, Queue: "recognize", Payload: task.Payload(), At: at},
	})
	require.NoError(t, err)
	require.NoError(t, st.Settle(ctx, store.Settlement{
		Key: "recognize_done", Path: tasks.Recognize, Finished: true, Verdict: tasks.Archive, Outcome: tasks.Quota, Reason: "quota", At: at,
	}))
	o := New(Options{Redis: rdb, Queue: rdb, Store: st, Ledger: ledger})
	out := map[string]any{}
	add := func(name string, report any, err error) {
		require.NoError(t, err, name)
		out[name] = report
	}
	change, err := o.Queues.Pause(ctx, PauseRequest{Targets: []string{"recognize"}, Only: true, By: "alice", Why: "lunch"})
	add("pause", change, err)
	queues, err := o.Queues.List(ctx)
	add("queues", queues, err)
	sources, err := o.Sources.List(ctx)
	add("sources", sources, err)
	halts, err := o.Sources.Halts(ctx)
	add("halts", halts, err)
	list, err := o.Tasks.List(ctx, store.TaskFilter{Limit: 9})
	add("tasks", list, err)
	results, err := o.Tasks.Results(ctx, p.Key)
	add("results", results, err)
	why, err := o.Tasks.Why(ctx, p.Key, 1)
	add("why", why, err)
	uploads, err := o.Uploads.List(ctx, idempotency.Filter{Limit: 9})
	add("uploads", uploads, err)
	upload, err := o.Uploads.Show(ctx, "upload_uncertain")
	add("upload", upload, err)
	free, err := o.Uploads.Show(ctx, "upload_free")
	add("upload that is free", free, err)
	stores, err := o.Stores.Report(ctx)
	add("store", stores, err)
	limits, err := o.Limits.List(ctx)
	add("limits", limits.Revision, err)
	return out
}

// steady replaces times and random texts of a JSON value with what they are.
func steady(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = steady(k, v[k])
		}
	case []any:
		for i := range v {
			v[i] = steady(name, v[i])
		}
	case string:
		at, err := time.Parse(time.RFC3339Nano, v)
		switch {
		case err == nil && at.Equal(at.Truncate(time.Millisecond)) && v[len(v)-1] == 'Z':
			return "UTC milliseconds"
		case name == "why" || name == "id" || name == "name" || name == "state" && len(v) > 20 || name == "because":
			return "text"
		}
	}
	return v
}

// The fields of reports are an interface: scripts read them.
func TestReportsKeepTheirJSONFields(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(seededReports(t))
	require.NoError(t, err)
	var value any
	require.NoError(t, json.Unmarshal(raw, &value))
	got, err := json.MarshalIndent(steady("", value), "", "  ")
	require.NoError(t, err)
	file := filepath.Join("testdata", "reports.golden.json")
	if *update {
		require.NoError(t, os.WriteFile(file, append(got, '\n'), 0o644))
	}
	expected, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(expected), string(got)+"\n")
}
