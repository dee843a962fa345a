package main

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/internal/cli"
	"reprise/internal/redistest"
	"reprise/tasks"
)

const twoSources = `
limits:
  recognize: {requests_per_minute: 600, concurrency: 10}
  enterprise: {concurrency: 2}
sources:
  one: {token: a, limits: {recognize: {concurrency: 4}, upload: {units_per_day: 7}}}
  two: {token: b, limits: {recognize: {requests_per_minute: 0}}}
  three: {token: c, limits: {}}
groups:
  archive: {ceiling: 70%, source: two}
  labels: {}
`

// Limits of one source once did not load: their section was expected to be a number.
func TestLimitsOfASourceAreSeeded(t *testing.T) {
	t.Parallel()
	a := app{&cli.Process{Err: &bytes.Buffer{}}}
	cmd := a.configCommand()
	require.NoError(t, cmd.Flags().Set("config", settingsFile(t, twoSources)))
	c, err := a.load(cmd, defaults())
	require.NoError(t, err)
	o, err := c.options(a, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NotContains(t, o.Admission.PerSource, "three")

	cfg := o.Admission
	cfg.Sources = nil
	for _, s := range o.Sources {
		cfg.Sources = append(cfg.Sources, admission.SourceConfig{Name: s.Name})
	}
	gates, err := admission.New(redistest.DB(t), cfg)
	require.NoError(t, err)
	_, err = gates.SeedLimits(t.Context())
	require.NoError(t, err)
	limits, _, err := gates.LimitsInForce(t.Context())
	require.NoError(t, err)
	for _, want := range []struct {
		source, name, value string
		path                tasks.Path
	}{
		{"one", "concurrency", "4", tasks.Recognize},
		{"one", "requests_per_minute", "600", tasks.Recognize}, // left out: as for every source
		{"one", "concurrency", "2", tasks.Enterprise},
		{"one", "units_per_day", "7", tasks.Upload},
		{"two", "concurrency", "10", tasks.Recognize},
		{"two", "requests_per_minute", "0", tasks.Recognize}, // off for this one
		{"three", "requests_per_minute", "600", tasks.Recognize},
	} {
		require.Contains(t, limits, admission.Limit{Scope: admission.ScopeOf(want.source, want.path), Name: want.name, Value: want.value})
	}
	require.Contains(t, limits, admission.Limit{Scope: admission.ScopeOfGroup("archive"), Name: "ceiling", Value: "700"})
	require.Contains(t, limits, admission.Limit{Scope: admission.ScopeOfGroup("labels"), Name: "weight", Value: "1"})
}

func TestConfigPrintsTheSettingsOfSourcesAndGroups(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command(t, nil, "config", "--config", settingsFile(t, twoSources))
	require.Equal(t, cli.OK, code, stderr)
	require.Contains(t, stdout, "sources.one.token: ********\n")
	require.Contains(t, stdout, "sources.one.limits.recognize.concurrency: 4\n")
	require.Contains(t, stdout, "sources.two.limits.recognize.requests_per_minute: 0\n")
	require.Contains(t, stdout, "groups.archive.ceiling: 70%\n")
	require.NotContains(t, stdout, "nil")
}

func TestConfigNeedsNoRedisStoreOrToken(t *testing.T) {
	t.Parallel()
	code, _, stderr := command(t, nil, "config")
	require.Equal(t, cli.OK, code, stderr)
}

func TestErrorsNameWrongSettings(t *testing.T) {
	t.Parallel()
	const token = "AUDD_API_TOKEN=sesame"
	for name, c := range map[string]struct {
		yaml    string
		environ []string
		flags   []string
		want    string
	}{
		"a number for a section":           {yaml: "sources: {one: {token: a, limits: 4}}", want: "sources.one.limits: expected a section with keys"},
		"a limit of a source":              {yaml: "sources: {one: {token: a, limits: {upload: {concurrency: -4}}}}", want: "sources.one.limits.upload.concurrency -4 must be 0"},
		"a limit above the global one":     {yaml: "limits: {global: {concurrency: 2}, upload: {concurrency: 4}}", want: "limits.upload.concurrency 4 is more than limits.global.concurrency 2"},
		"a variable":                       {environ: []string{"REPRISE_LIMITS_RECOGNIZE_REQUESTS_PER_MINUTE=-3"}, want: "limits.recognize.requests_per_minute (REPRISE_LIMITS_RECOGNIZE_REQUESTS_PER_MINUTE) -3 must be 0"},
		"a flag beats its variable":        {environ: []string{"REPRISE_SLOTS_UPLOAD=3"}, flags: []string{"--upload-slots", "-4"}, want: "slots.upload (--upload-slots) -4: "},
		"slots":                            {yaml: "slots: {recognize: -4}", want: "slots.recognize -4: "},
		"a log level":                      {flags: []string{"--log-level", "loud"}, want: `log.level (--log-level) "loud": must be debug`},
		"a budget":                         {yaml: "budgets: {max_attempts: 0}", want: "budgets.max_attempts 0: "},
		"a host":                           {yaml: "audd: {enterprise_url: sesame}", want: "audd.enterprise_url: must be an http or https URL"},
		"a host of a source":               {yaml: "sources: {one: {token: a, base_url: 'https://h/?token=sesame'}}", want: "sources.one.base_url: must be a URL without"},
		"a name of a source":               {yaml: "sources: {one x: {token: a}}", want: `sources: the name "one x" must be`},
		"an unknown source":                {yaml: "groups: {archive: {source: tow}}", want: `groups.archive.source "tow": `},
		"a ceiling":                        {yaml: "groups: {archive: {ceiling: 7}}", want: "groups.archive.ceiling: expected a share such as 70% or 0.7"},
		"a typo in a source":               {yaml: "sources: {one: {tokn: a}}", want: "sources.one.tokn: unknown key, did you mean sources.one.token?"},
		"a typo in a group":                {yaml: "groups: {archive: {ceilling: 70%}}", want: "did you mean groups.archive.ceiling?"},
		"a typo in a variable":             {environ: []string{"REPRISE_LIMITS_RECOGNIZE_REQUEST_PER_MINUTE=3"}, want: "REPRISE_LIMITS_RECOGNIZE_REQUEST_PER_MINUTE: unknown variable, did you mean REPRISE_LIMITS_RECOGNIZE_REQUESTS_PER_MINUTE?"},
		"a token variable that is not set": {yaml: "sources: {one: {token_env: REPRISE_TOKEN_ONE}}", want: "sources.one.token_env: the variable REPRISE_TOKEN_ONE is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"--config", settingsFile(t, c.yaml+"\n")}, c.flags...)
			environ := append([]string{token, "REPRISE_REDIS_URL=redis://127.0.0.1:1", "REPRISE_STORE_URL=sqlite:" + t.TempDir() + "/s.db"}, c.environ...)
			for _, sub := range []string{"config", "check"} {
				code, stdout, stderr := command(t, environ, append([]string{sub}, args...)...)
				require.Equal(t, cli.Failed, code, sub)
				require.Empty(t, stdout)
				require.Contains(t, stderr, c.want, sub)
				require.NotContains(t, stderr, "sesame")
			}
		})
	}
}

func TestTokenVariableNamedByASourceIsNotReportedAsUnknown(t *testing.T) {
	t.Parallel()
	path := settingsFile(t, "sources: {one: {token_env: REPRISE_TOKEN_ONE}}")
	code, stdout, stderr := command(t, []string{"REPRISE_TOKEN_ONE=sesame", "REPRISE_CONFIG=" + path}, "config")
	require.Equal(t, cli.OK, code, stderr)
	require.NotContains(t, stdout+stderr, "sesame")
}
