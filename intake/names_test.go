package intake

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/redistest"
	"reprise/tasks"
)

// seedNames writes the limits of a worker with two sources and two groups.
func (b *rig) seedNames() {
	b.t.Helper()
	cfg := admission.DefaultConfig()
	cfg.Sources = []admission.SourceConfig{{Name: "main"}, {Name: "spare"}}
	cfg.Groups = map[string]admission.Group{"archive": {Ceiling: 0.5}, "ugc": {Weight: 5, Source: "spare"}}
	gates, err := admission.New(b.rdb, cfg)
	require.NoError(b.t, err)
	_, err = gates.SeedLimits(b.t.Context())
	require.NoError(b.t, err)
}

func (b *rig) pending(queue string) int {
	b.t.Helper()
	n, err := redistest.CountTasks(b.t.Context(), b.rdb, queue)
	require.NoError(b.t, err)
	return n.Pending
}

func grouped(name string) Request { return Request{Path: tasks.Recognize, Group: name} }

func TestTasksOfAGroupGoToItsQueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.seedNames()
	a := b.file("a.wav", "1")
	p := b.enqueue(grouped("archive"), a)
	require.Equal(t, []Status{Queued}, statuses(p))
	require.Equal(t, 1, b.pending("recognize.archive"))
	st, err := b.store.TaskStatus(t.Context(), p.Items[0].Payload.Key)
	require.NoError(t, err)
	require.Equal(t, "recognize.archive", st.Queue)

	require.Equal(t, []Status{AlreadyQueued}, statuses(b.enqueue(grouped("archive"), a)))
	require.Equal(t, []Status{AlreadyQueued}, statuses(b.enqueue(Request{}, a)), "no group is no heavier than this one")
	require.Zero(t, b.pending("recognize"))
	require.Equal(t, []Status{Queued}, statuses(b.enqueue(grouped("ugc"), a)), "a heavier group does not wait behind a lighter one")
	require.Equal(t, 1, b.pending("recognize.ugc"))
}

func TestTaskQueuedInAHeavierGroupIsNotQueuedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.seedNames()
	a := b.file("a.wav", "1")
	b.enqueue(grouped("ugc"), a)
	require.Equal(t, []Status{AlreadyQueued}, statuses(b.enqueue(grouped("archive"), a)))
	require.Zero(t, b.pending("recognize.archive"))
}

// Tasks for unknown names used to be accepted and to wait indefinitely.
func TestUnknownGroupsAndSourcesAreRefused(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a := b.file("a.wav", "1")
	of := func(source, group string) Request {
		req := one(7)
		req.Params.Source, req.Group = source, group
		return req
	}
	_, err := b.Plan(t.Context(), of("nope", ""), []string{a}, nil)
	require.NoError(t, err, "names are unknown before the first worker has run")
	b.seedNames()

	var unknown *UnknownNameError
	_, err = b.Plan(t.Context(), grouped("archve"), []string{a}, nil)
	require.ErrorAs(t, err, &unknown)
	require.EqualError(t, err, `no worker serves the group "archve" (did you mean archive? known: archive, ugc): create it with `+"`inspect group set NAME weight=1`")
	_, err = b.Plan(t.Context(), of("nope", ""), []string{a}, nil)
	require.ErrorAs(t, err, &unknown)
	require.ErrorContains(t, err, `no worker serves the source "nope" (known: main, spare): name one with --source`)
	_, err = b.Plan(t.Context(), grouped("UGC"), []string{a}, nil)
	require.ErrorContains(t, err, "lower-case letters")

	require.Equal(t, []Status{ToQueue}, statuses(b.plan(of("Spare", "ugc"), a)))
	require.Equal(t, []Status{ToQueue}, statuses(b.plan(of("main", "archive"), a)))
	p := b.plan(of("main", "ugc"), a)
	require.Equal(t, "is for the source main, but the group ugc uses only spare", p.Items[0].Reason)
}

func TestOnlyTheManifestRowWithAnUnknownSourceIsRefused(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	b.seedNames()
	b.file("a.wav", "1")
	b.file("b.wav", "2")
	req := Request{Path: tasks.Upload, Params: tasks.Params{Source: "main"}}
	m, err := ReadManifest(t.Context(), strings.NewReader("audio_id,file,source\n1,a.wav,\n2,b.wav,sapre\n"), "songs.csv", b.dir)
	require.NoError(t, err)
	p, err := b.PlanManifest(t.Context(), req, m, nil)
	require.NoError(t, err)
	require.Equal(t, []Status{ToQueue, Refused}, statuses(p))
	require.Contains(t, p.Items[1].Reason, `no worker serves the source "sapre" (did you mean spare?`)
}
