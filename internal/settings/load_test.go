package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"reprise/internal/settings"
)

type account struct {
	Name  string `mapstructure:"name" name:"true"`
	Token string `mapstructure:"token" secret:"true"`
	Own   *own   `mapstructure:"own"`
}

type own struct {
	Most *int64
}

type party struct {
	Part settings.Share `mapstructure:"part"`
	Own  own            `mapstructure:"own"`
}

type Common struct {
	Region string `mapstructure:"region"`
}

type config struct {
	Common  `mapstructure:",squash"`
	Redis   settings.Redis
	Slots   int
	Small   int64            `mapstructure:"small" min:"0"`
	Share   float64          `mapstructure:"share"`
	Wait    time.Duration    `mapstructure:"wait"`
	Open    bool             `mapstructure:"open"`
	Return  []string         `mapstructure:"return"`
	Sources []account        `mapstructure:"sources"`
	Weights map[string]int   `mapstructure:"weights"`
	Parties map[string]party `mapstructure:"parties"`
	Token   string           `mapstructure:"variable" variable:"true"`
	Ignored string           `mapstructure:"-"`
}

func defaults() config {
	return config{Slots: 64, Wait: time.Minute, Weights: map[string]int{"live": 3}}
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reprise.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// load reads a settings file into the defaults.
func load(t *testing.T, yaml string) (config, error) {
	t.Helper()
	cfg := defaults()
	_, err := settings.Load(&cfg, settings.Source{Environ: []string{"REPRISE_CONFIG=" + file(t, yaml)}})
	return cfg, err
}

func TestFlagsOverrideVariablesAndVariablesOverrideTheFile(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.String("config", "", "")
	flags.Int("slots", 1, "")
	flags.Duration("wait", 0, "")
	flags.StringSlice("return", nil, "")
	path := file(t, "region: eu\nredis: {url: redis://file}\nslots: 2\nwait: 1s\nshare: 1\nopen: true\nsources:\n- name: ' Main '\n  token: t\nWeights: {A.b: 2}\n")
	require.NoError(t, flags.Parse([]string{"--config=" + path, "--wait=3s", "--return=spotify,deezer"}))
	cfg := defaults()
	loaded, err := settings.Load(&cfg, settings.Source{
		Environ:   []string{"REPRISE_CONFIG=/no/such", "REPRISE_REDIS_URL=redis://env", "REPRISE_SLOTS=", "REPRISE_WAIT=2s", "REPRISE_SMALL=200", "REPRISE_SHARE=0.5", "REPRISE_OPEN=false"},
		Flags:     flags,
		FlagNames: map[string]string{"slots": "slots", "wait": "wait", "return": "return", "region": "no-such-flag"},
	})
	require.NoError(t, err)
	require.Equal(t, config{
		Common: Common{Region: "eu"},
		Redis:  settings.Redis{URL: "redis://env"}, Slots: 2, Small: 200, Share: 0.5, Wait: 3 * time.Second,
		Return: []string{"spotify", "deezer"}, Sources: []account{{Name: "main", Token: "t"}}, Weights: map[string]int{"live": 3, "a.b": 2},
	}, cfg)
	require.Equal(t, []string{
		`line 10 of the settings file: "Weights" is used as "weights"`, `line 10 of the settings file: "A.b" is used as "a.b"`,
		`sources[0].name: " Main " is used as "main"`,
	}, loaded.Warnings)
}

func TestErrorsNameTheKeyAndShowNoValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ yaml, want string }{
		"a typo":                         {"slotz: 1", "slotz: unknown key, did you mean slots?"},
		"a typo in a list":               {"sources: [{nmae: a}]", "sources[0].nmae: unknown key, did you mean sources[0].name?"},
		"an unknown key":                 {"elephant: 1", "elephant: unknown key"},
		"blank text":                     {"redis: {url: ' '}", "redis.url: is blank"},
		"null":                           {"redis: {url: }", "redis.url: is blank"},
		"text for a number":              {"slots: sesame", "slots: expected a whole number, got text"},
		"quoted number":                  {"slots: '5'", "slots: expected a whole number, got text"},
		"fraction":                       {"slots: 1.5", "slots: expected a whole number, got a fraction"},
		"negative":                       {"small: -1", "small -1: must be 0 or more"},
		"number for a string":            {"sources: [{token: 12345}]", "sources[0].token: expected a string in quotes, got a number"},
		"number for a duration":          {"wait: 5", "wait: expected a duration such as 30s"},
		"bad duration":                   {"wait: sesame", "wait: expected a duration such as 30s"},
		"text for a switch":              {"open: sesame", "open: expected true or false, got text"},
		"text for a list":                {"return: sesame", "return: expected a list, got text"},
		"text for a section":             {"redis: sesame", "redis: expected a section with keys, got text"},
		"not a number":                   {"share: .nan", "share: expected a number"},
		"value in a map":                 {"weights: {live: x}", "weights.live: expected a whole number"},
		"a missing secret file":          {"sources: [{token_file: /no/such}]", "sources[0].token_file: read secret: "},
		"secret and file":                {"sources: [{token: a, token_file: /b}]", "sources[0].token_file: set together with sources[0].token: use one"},
		"file suffix on a plain key":     {"slots_file: /b", "slots_file: unknown key"},
		"text for an optional number":    {"sources: [{own: {most: sesame}}]", "sources[0].own.most: expected a whole number, got text"},
		"number for an optional section": {"sources: [{own: 4}]", "sources[0].own: expected a section with keys, got a number"},
		"a typo in a map":                {"parties: {a: {prat: 1}}", "parties.a.prat: unknown key, did you mean parties.a.part?"},
		"a typo deep in a map":           {"parties: {a: {own: {mots: 1}}}", "parties.a.own.mots: unknown key, did you mean parties.a.own.most?"},
		"a name cut short":               {"weig: {a: 1}", "weig: unknown key, did you mean weights?"},
		"an empty key in a map":          {"parties: {a: }", "parties.a: is blank"},
		"a section for a string":         {"sources: [{token: {}}]", "sources[0].token: expected a string, got a section"},
		"a share without a percent sign": {"parties: {a: {part: 70}}", "parties.a.part: expected a share such as 70% or 0.7"},
		"a share above 100%":             {"parties: {a: {part: 170%}}", "parties.a.part: expected a share"},
		"a share in words":               {"parties: {a: {part: sesame}}", "parties.a.part: expected a share"},
		"a key in two spellings":         {"slots: 1\nSlots: 2", "line 2: Slots is a duplicate of slots in line 1"},
		"two spellings in a map":         {"weights: {a: 1, A: 2}", "A is a duplicate of a in line 1"},
		"a second document":              {"slots: 1\n---\nslots: 2", "it has a second YAML document (---), which is not supported"},
		"a number beyond int64":          {"small: 18446744073709551615", "small: 18446744073709551615 is out of range"},
		"percent in a key":               {"'a%d': 1", "a%d: unknown key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := load(t, c.yaml)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "sesame")
			require.NotContains(t, err.Error(), "12345")
			require.Equal(t, defaults(), cfg)
		})
	}
}

func TestEveryWrongKeyIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := load(t, "slots: x\nwait: y\nelephant: 1\n")
	require.ErrorContains(t, err, "slots: ")
	require.ErrorContains(t, err, "wait: ")
	require.ErrorContains(t, err, "elephant: ")
	cfg := defaults()
	_, err = settings.Load(&cfg, settings.Source{Environ: []string{"REPRISE_SLOTS=x", "REPRISE_OPEN=y", "REPRISE_WAIT= ", "REPRISE_SMALL=-5"}})
	require.ErrorContains(t, err, "slots (REPRISE_SLOTS): expected a whole number, got text")
	require.ErrorContains(t, err, "open (REPRISE_OPEN): expected true or false")
	require.ErrorContains(t, err, "wait (REPRISE_WAIT): expected a duration")
}

func TestSettingsFileMustExistAndBeYAML(t *testing.T) {
	t.Parallel()
	_, err := settings.Load(new(config), settings.Source{Environ: []string{"REPRISE_CONFIG=/no/such.yaml"}})
	require.ErrorContains(t, err, "open settings file")
	_, err = load(t, "a: [")
	require.ErrorContains(t, err, "read settings file")
	_, err = settings.Load(config{}, settings.Source{})
	require.ErrorContains(t, err, "expected a pointer to a struct")
	cfg, err := load(t, "")
	require.NoError(t, err)
	require.Equal(t, defaults(), cfg)
}

func TestSharedFileMayHoldKeysOfOtherCommands(t *testing.T) {
	t.Parallel()
	shared := func(yaml string) (config, *settings.Loaded, error) {
		cfg := defaults()
		loaded, err := settings.Load(&cfg, settings.Source{Shared: true, Environ: []string{"REPRISE_CONFIG=" + file(t, yaml)}})
		return cfg, loaded, err
	}
	cfg, loaded, err := shared("Elephant: {X: 1, y: , z_file: /no/such}\nredis: {pool: }\nSlots: 5\n")
	require.NoError(t, err)
	require.Equal(t, 5, cfg.Slots)
	require.Equal(t, []string{`line 3 of the settings file: "Slots" is used as "slots"`}, loaded.Warnings)
	_, _, err = shared("solts: 5\n")
	require.ErrorContains(t, err, "did you mean slots?")
}

func TestSecretsAreReadFromFilesAndPrintedMasked(t *testing.T) {
	t.Parallel()
	secret := file(t, "sesame\n")
	urlFile := file(t, "rediss://user:sesame@host:6379/1?x=sesame\n")
	cfg := defaults()
	_, err := settings.Load(&cfg, settings.Source{
		Environ: []string{"REPRISE_REDIS_URL_FILE=" + urlFile, "REPRISE_CONFIG=" + file(t, "sources: [{name: a, token_file: "+secret+"}, {name: b}]")},
	})
	require.NoError(t, err)
	require.Equal(t, "sesame", cfg.Sources[0].Token)
	var out strings.Builder
	require.NoError(t, settings.Print(&out, &cfg))
	require.Equal(t, `region: 
redis.url: rediss://********@host:6379/1
slots: 64
small: 0
share: 0
wait: 1m0s
open: false
return: 
sources[0].name: a
sources[0].token: ********
sources[1].name: b
sources[1].token: 
weights.live: 3
variable: 
`, out.String())
	for _, odd := range []string{"sesame", "redis:sesame", "redis://h/p@ss", "redis://u:se%zz@h"} {
		cfg.Redis.URL = odd
		out.Reset()
		require.NoError(t, settings.Print(&out, &cfg))
		require.Contains(t, out.String(), "redis.url: ********\n")
	}
}

func TestSecretAndItsFileReplaceEachOtherInALaterSource(t *testing.T) {
	t.Parallel()
	named := func(content string) string { return file(t, content) }
	parsed := func(args ...string) *pflag.FlagSet {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.String("redis", "", "")
		require.NoError(t, flags.Parse(args))
		return flags
	}
	for name, c := range map[string]struct {
		yaml    string
		environ []string
		flags   *pflag.FlagSet
		want    string
	}{
		"a variable replaces the file of the settings file": {"redis: {url_file: /no/such}", []string{"REPRISE_REDIS_URL=redis://env"}, parsed(), "redis://env"},
		"the file of a variable replaces the settings file": {"redis: {url: redis://file}", []string{"REPRISE_REDIS_URL_FILE=" + named("redis://env")}, parsed(), "redis://env"},
		"a flag replaces the file of a variable":            {"", []string{"REPRISE_REDIS_URL_FILE=/no/such"}, parsed("--redis=redis://flag"), "redis://flag"},
	} {
		cfg := defaults()
		_, err := settings.Load(&cfg, settings.Source{
			Environ: append(c.environ, "REPRISE_CONFIG="+named(c.yaml)), Flags: c.flags, FlagNames: map[string]string{"redis.url": "redis"},
		})
		require.NoError(t, err, name)
		require.Equal(t, c.want, cfg.Redis.URL, name)
	}
	cfg := defaults()
	_, err := settings.Load(&cfg, settings.Source{Environ: []string{"REPRISE_REDIS_URL=redis://env", "REPRISE_REDIS_URL_FILE=/b"}})
	require.ErrorContains(t, err, "redis.url_file (REPRISE_REDIS_URL_FILE): set together with redis.url: use one")
}

func TestErrorOfTheYAMLReaderQuotesNoValue(t *testing.T) {
	t.Parallel()
	for _, yaml := range []string{"sources: [{token: *sesame}]", "slots: !!int ses`ame", "sesame", "? {a: sesame}\n: 1", "a: [sesame: {"} {
		_, err := load(t, yaml)
		require.ErrorContains(t, err, "read settings file", yaml)
		require.NotContains(t, err.Error(), "sesame", yaml)
		require.NotContains(t, err.Error(), "ame`", yaml)
	}
}

func TestFlagThatBelongsToNoKeyIsAnError(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.String("x", "", "")
	cfg := defaults()
	_, err := settings.Load(&cfg, settings.Source{Flags: flags, FlagNames: map[string]string{"nowhere": "x"}})
	require.ErrorContains(t, err, `flag --x is bound to "nowhere"`)
	require.NoError(t, flags.Parse([]string{"--x="}))
	_, err = settings.Load(&cfg, settings.Source{Flags: flags, FlagNames: map[string]string{"redis.url": "x"}})
	require.ErrorContains(t, err, "redis.url (--x): is blank")
}

func TestOptionalValuesAreLoadedAndPrintedWhenTheyAreSet(t *testing.T) {
	t.Parallel()
	cfg, err := load(t, "sources: [{name: a, own: {most: 4}}, {name: b, own: {}}, {name: c}]\nparties: {x: {part: 12.5%, own: {most: 0}}, y: {part: 0.7}, z: {}}")
	require.NoError(t, err)
	require.EqualValues(t, 4, *cfg.Sources[0].Own.Most)
	require.Nil(t, cfg.Sources[2].Own)
	require.Contains(t, cfg.Parties, "z", "an empty section is one")
	var out strings.Builder
	require.NoError(t, settings.Print(&out, &cfg))
	require.Contains(t, out.String(), "sources[0].own.most: 4\nsources[1].name: b\n")
	require.Contains(t, out.String(), "parties.x.part: 12.5%\nparties.x.own.most: 0\nparties.y.part: 70%\nparties.z.part: 0\n")
	require.NotContains(t, out.String(), "nil")
}

func TestFieldOfAnUnsupportedTypeIsAnError(t *testing.T) {
	t.Parallel()
	var bad struct {
		Rooms map[string]struct {
			Doors []complex128 `mapstructure:"doors"`
		} `mapstructure:"rooms"`
	}
	_, err := settings.Load(&bad, settings.Source{})
	require.ErrorContains(t, err, "rooms.*.doors.* has type complex128")
}

func TestKeyOfAFieldIsItsNameInSnakeCase(t *testing.T) {
	t.Parallel()
	var cfg struct {
		BaseURL, URL, AIMD string
		RequestsPerMinute  int
		HTTPTimeout        int
	}
	var out strings.Builder
	require.NoError(t, settings.Print(&out, &cfg))
	require.Equal(t, "base_url: \nurl: \naimd: \nrequests_per_minute: 0\nhttp_timeout: 0\n", out.String())
	_, err := settings.Load(&cfg, settings.Source{Environ: []string{"REPRISE_BASE_URL=u", "REPRISE_HTTP_TIMEOUT=3", "REPRISE_CONFIG=" + file(t, "aimd: x\nrequests_per_minute: 5")}})
	require.NoError(t, err)
	require.Equal(t, []any{"u", "x", 5, 3}, []any{cfg.BaseURL, cfg.AIMD, cfg.RequestsPerMinute, cfg.HTTPTimeout})
}
