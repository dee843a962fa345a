package intake

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/redistest"
	"reprise/tasks"
)

// inForceHere writes what a worker with two sources and two groups would.
func (b *bench) inForceHere() {
	b.t.Helper()
	cfg := admission.DefaultConfig()
	cfg.Sources = []admission.SourceConfig{{Name: "main"}, {Name: "spare"}}
	cfg.Groups = map[string]admission.Group{"archive": {Ceiling: 0.5}, "ugc": {Weight: 5, Source: "spare"}}
	gates, err := admission.New(b.rdb, cfg)
	require.NoError(b.t, err)
	_, err = gates.SeedLimits(b.t.Context())
	require.NoError(b.t, err)
}

func (b *bench) pending(queue string) int {
	b.t.Helper()
	n, err := redistest.CountTasks(b.t.Context(), b.rdb, queue)
	require.NoError(b.t, err)
	return n.Pending
}

func grouped(name string) Request { return Request{Path: tasks.Recognize, Group: name} }

func TestAGroupsTasksGoToItsQueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.inForceHere()
	a := b.file("a.wav", 1)
	p := b.enqueue(grouped("archive"), a)
	require.Equal(t, []Status{Queued}, verdicts(p))
	require.Equal(t, 1, b.pending("recognize.archive"))
	st, err := b.store.TaskStatus(t.Context(), p.Items[0].Payload.Key)
	require.NoError(t, err)
	require.Equal(t, "recognize.archive", st.Queue)

	require.Equal(t, []Status{AlreadyQueued}, verdicts(b.enqueue(grouped("archive"), a)))
	require.Equal(t, []Status{AlreadyQueued}, verdicts(b.enqueue(Request{}, a)), "no group is no heavier than this one")
	require.Zero(t, b.pending("recognize"))
	require.Equal(t, []Status{Queued}, verdicts(b.enqueue(grouped("ugc"), a)), "a heavier group does not wait behind a lighter one")
	require.Equal(t, 1, b.pending("recognize.ugc"))
}

func TestALighterGroupSharesWhatWaitsInAHeavierOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.inForceHere()
	a := b.file("a.wav", 1)
	b.enqueue(grouped("ugc"), a)
	require.Equal(t, []Status{AlreadyQueued}, verdicts(b.enqueue(grouped("archive"), a)))
	require.Zero(t, b.pending("recognize.archive"))
}

// A task of a name that no worker has was accepted and waited for ever.
func TestUnknownGroupsAndSourcesAreRefused(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	a := b.file("a.wav", 1)
	of := func(source, group string) Request {
		req := one(7)
		req.Params.Source, req.Group = source, group
		return req
	}
	_, err := b.Plan(t.Context(), of("nope", ""), []string{a}, nil)
	require.NoError(t, err, "before the first worker has run nobody can tell")
	b.inForceHere()

	var unknown *UnknownNameError
	_, err = b.Plan(t.Context(), grouped("archve"), []string{a}, nil)
	require.ErrorAs(t, err, &unknown)
	require.EqualError(t, err, `no worker has the group "archve", did you mean archive? (there is archive, ugc; `+"`inspect group set NAME weight=1` makes one)")
	_, err = b.Plan(t.Context(), of("nope", ""), []string{a}, nil)
	require.ErrorAs(t, err, &unknown)
	require.ErrorContains(t, err, `no worker has the source "nope" (there is main, spare`)
	_, err = b.Plan(t.Context(), grouped("UGC"), []string{a}, nil)
	require.ErrorContains(t, err, "want lower-case letters")

	require.Equal(t, []Status{ToQueue}, verdicts(b.plan(of("Spare", "ugc"), a)))
	require.Equal(t, []Status{ToQueue}, verdicts(b.plan(of("main", "archive"), a)))
	p := b.plan(of("main", "ugc"), a)
	require.Equal(t, "is for the source main, but the group ugc belongs to spare", p.Items[0].Reason)
}

func TestARowOfAManifestWithAnUnknownSourceIsRefusedAlone(t *testing.T) {
	t.Parallel()
	b := setupUploads(t)
	b.inForceHere()
	b.file("a.wav", 1)
	b.file("b.wav", 2)
	req := Request{Path: tasks.Upload, Params: tasks.Params{Source: "main"}}
	m, err := ReadManifest(t.Context(), strings.NewReader("audio_id,file,source\n1,a.wav,\n2,b.wav,sapre\n"), "songs.csv", b.dir)
	require.NoError(t, err)
	p, err := b.PlanManifest(t.Context(), req, m, nil)
	require.NoError(t, err)
	require.Equal(t, []Status{ToQueue, Refused}, verdicts(p))
	require.Contains(t, p.Items[1].Reason, `no worker has the source "sapre", did you mean spare?`)
}
