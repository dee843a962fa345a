package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/cli"
	"reprise/internal/redistest"
)

// Regression: an upload to a source that no worker has, and a task of a group that no worker serves, were accepted and
// waited indefinitely.
func TestUnknownSourcesAndGroupsAreRefused(t *testing.T) {
	t.Parallel()
	rdb := redistest.DB(t)
	cfg := admission.DefaultConfig()
	cfg.Sources = []admission.SourceConfig{{Name: "main"}, {Name: "spare"}}
	cfg.Groups = map[string]admission.Group{"archive": {}}
	gates, err := admission.New(rdb, cfg)
	require.NoError(t, err)
	_, err = gates.SeedLimits(t.Context())
	require.NoError(t, err)
	dir := t.TempDir()
	clip := filepath.Join(dir, "a.wav")
	require.NoError(t, os.WriteFile(clip, wav(1), 0o600))
	enqueue := func(args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		environ := []string{"REPRISE_REDIS_URL=" + redistest.URL(rdb), "REPRISE_STORE_URL=sqlite:" + dir + "/s.db"}
		code = program.Run(t.Context(), cli.Process{Args: args, Environ: environ, In: strings.NewReader(""), Out: &out, Err: &errs})
		return code, out.String(), errs.String()
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"upload", "--audio-id", "300", "--source", "spar", clip}, `no worker serves the source "spar" (did you mean spare? known: main, spare`},
		{[]string{"recognize", "--group", "archve", clip}, `no worker serves the group "archve" (did you mean archive?`},
		{[]string{"enterprise", "--group", "nope", clip}, `no worker serves the group "nope" (known: archive`},
		{[]string{"recognize", "--group", "Archive", clip}, "lower-case letters"},
	} {
		code, _, stderr := enqueue(c.args...)
		require.Equal(t, cli.Usage, code, c.args)
		require.Contains(t, stderr, c.want)
	}
	for path, args := range map[string][]string{
		"recognize": nil, "enterprise": {"--max-units", "3"}, "upload": {"--audio-id", "300", "--source", "spare"},
	} {
		code, stdout, stderr := enqueue(append([]string{path, "--group", "archive", clip}, args...)...)
		require.Equal(t, cli.OK, code, stderr)
		require.Contains(t, stdout, " in group archive: 1 queued")
		count, err := redistest.CountTasks(t.Context(), rdb, path+".archive")
		require.NoError(t, err)
		require.Equal(t, 1, count.Pending)
	}
	code, stdout, stderr := enqueue("recognize", "--group", "archive", "--json", clip)
	require.Equal(t, cli.OK, code, stderr)
	require.Contains(t, stdout, `"group": "archive"`)
}
