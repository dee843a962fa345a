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
	Most *int64 `mapstructure:"most"`
}

type party struct {
	Part float64 `mapstructure:"part" share:"true"`
	Own  own     `mapstructure:"own"`
}

type Common struct {
	Region string `mapstructure:"region"`
}

type config struct {
	Common  `mapstructure:",squash"`
	Redis   settings.Redis   `mapstructure:"redis"`
	Slots   int              `mapstructure:"slots"`
	Small   uint8            `mapstructure:"small"`
	Share   float64          `mapstructure:"share"`
	Wait    time.Duration    `mapstructure:"wait"`
	Open    bool             `mapstructure:"open"`
	Return  []string         `mapstructure:"return"`
	Sources []account        `mapstructure:"sources"`
	Weights map[string]int   `mapstructure:"weights"`
	Parties map[string]party `mapstructure:"parties"`
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

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestFileEnvironmentAndFlagsInThatOrder(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.Int("slots", 1, "")
	flags.Duration("wait", 0, "")
	flags.StringSlice("return", nil, "")
	require.NoError(t, flags.Parse([]string{"--wait=3s", "--return=spotify,deezer"}))
	cfg := defaults()
	warnings, err := settings.Load(&cfg, settings.Source{
		File:   file(t, "region: eu\nredis: {url: redis://file}\nslots: 2\nwait: 1s\nshare: 1\nopen: true\nsources:\n- name: ' Main '\n  token: t\nWeights: {A.b: 2}\n"),
		Getenv: env(map[string]string{"REPRISE_REDIS_URL": "redis://env", "REPRISE_SLOTS": "", "REPRISE_WAIT": "2s", "REPRISE_SMALL": "200", "REPRISE_SHARE": "0.5", "REPRISE_OPEN": "false"}),
		Flags:  map[string]*pflag.Flag{"slots": flags.Lookup("slots"), "wait": flags.Lookup("wait"), "return": flags.Lookup("return")},
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
	}, warnings)
}

func TestWrongSettingsNameTheirKeyAndShowNoValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ yaml, want string }{
		"a typing error":                {"slotz: 1", "slotz: unknown key, did you mean slots?"},
		"a typing error in a list":      {"sources: [{nmae: a}]", "sources[0].nmae: unknown key, did you mean sources[0].name?"},
		"an unknown key":                {"elephant: 1", "elephant: unknown key"},
		"blank text":                    {"redis: {url: ' '}", "redis.url: is blank"},
		"null":                          {"redis: {url: }", "redis.url: is blank"},
		"text for a number":             {"slots: sesame", "slots: want a whole number, got a text"},
		"quoted number":                 {"slots: '5'", "slots: want a whole number, got a text"},
		"fraction":                      {"slots: 1.5", "slots: want a whole number, got a fraction"},
		"too large":                     {"small: 300", "small: 300 is out of range"},
		"negative":                      {"small: -1", "small: -1 is out of range"},
		"number for a text":             {"sources: [{token: 12345}]", "sources[0].token: want a text, got a number: put it in quotes"},
		"number for a duration":         {"wait: 5", "wait: want a duration such as 30s"},
		"bad duration":                  {"wait: sesame", "wait: want a duration such as 30s"},
		"text for a switch":             {"open: sesame", "open: want true or false, got a text"},
		"text for a list":               {"return: sesame", "return: want a list, got a text"},
		"text for a section":            {"redis: sesame", "redis: want a section with keys, got a text"},
		"not a number":                  {"share: .nan", "share: want a number"},
		"value in a map":                {"weights: {live: x}", "weights.live: want a whole number"},
		"secret file that is gone":      {"sources: [{token_file: /no/such}]", "sources[0].token_file: read secret: "},
		"secret and file":               {"sources: [{token: a, token_file: /b}]", "sources[0].token_file: set together with sources[0].token"},
		"file for what is no secret":    {"slots_file: /b", "slots_file: unknown key"},
		"text for what may be left out": {"sources: [{own: {most: sesame}}]", "sources[0].own.most: want a whole number, got a text"},
		"number for a section that may be left out": {"sources: [{own: 4}]", "sources[0].own: want a section with keys, got a number"},
		"a typing error in a map":                   {"parties: {a: {prat: 1}}", "parties.a.prat: unknown key, did you mean parties.a.part?"},
		"a typing error deep in a map":              {"parties: {a: {own: {mots: 1}}}", "parties.a.own.mots: unknown key, did you mean parties.a.own.most?"},
		"a name cut short":                          {"weig: {a: 1}", "weig: unknown key, did you mean weights?"},
		"an empty key in a map":                     {"parties: {a: }", "parties.a: is blank"},
		"a section for a text":                      {"sources: [{token: {}}]", "sources[0].token: want a text, got a section"},
		"a share that is no part":                   {"parties: {a: {part: 70}}", "parties.a.part: want a share such as 70% or 0.7"},
		"a share over all":                          {"parties: {a: {part: 170%}}", "parties.a.part: want a share"},
		"a share in words":                          {"parties: {a: {part: sesame}}", "parties.a.part: want a share"},
		"a key in two spellings":                    {"slots: 1\nSlots: 2", "line 2: Slots is there already, as slots in line 1"},
		"two spellings in a map":                    {"weights: {a: 1, A: 2}", "A is there already, as a in line 1"},
		"a second document":                         {"slots: 1\n---\nslots: 2", "a second document (---) in it would not be read"},
		"more than any number":                      {"small: 18446744073709551615", "small: 18446744073709551615 is out of range"},
		"percent in a key":                          {"'a%d': 1", "a%d: unknown key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := defaults()
			_, err := settings.Load(&cfg, settings.Source{File: file(t, c.yaml)})
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "sesame")
			require.NotContains(t, err.Error(), "12345")
			require.Equal(t, defaults(), cfg)
		})
	}
}

func TestEveryWrongKeyIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	cfg := defaults()
	_, err := settings.Load(&cfg, settings.Source{File: file(t, "slots: x\nwait: y\n")})
	require.ErrorContains(t, err, "slots")
	require.ErrorContains(t, err, "wait")
	_, err = settings.Load(&cfg, settings.Source{Getenv: env(map[string]string{"REPRISE_SLOTS": "x", "REPRISE_OPEN": "y", "REPRISE_WAIT": " "})})
	require.ErrorContains(t, err, "slots (REPRISE_SLOTS): want a whole number")
	require.ErrorContains(t, err, "open (REPRISE_OPEN)")
}

func TestTheFileMustExistAndBeYAML(t *testing.T) {
	t.Parallel()
	cfg := defaults()
	_, err := settings.Load(&cfg, settings.Source{File: "/no/such.yaml"})
	require.ErrorContains(t, err, "open settings file")
	_, err = settings.Load(&cfg, settings.Source{Getenv: env(map[string]string{"REPRISE_CONFIG": file(t, "a: [")})})
	require.ErrorContains(t, err, "read settings file")
	_, err = settings.Load(cfg, settings.Source{})
	require.ErrorContains(t, err, "want a pointer to a struct")
}

func TestASharedFileMayHoldKeysOfOtherCommands(t *testing.T) {
	t.Parallel()
	cfg := defaults()
	warnings, err := settings.Load(&cfg, settings.Source{Shared: true, File: file(t, "Elephant: {X: 1}\nSlots: 5\n")})
	require.NoError(t, err)
	require.Equal(t, 5, cfg.Slots)
	require.Equal(t, []string{`line 2 of the settings file: "Slots" is used as "slots"`}, warnings)
	_, err = settings.Load(&cfg, settings.Source{Shared: true, File: file(t, "solts: 5\n")})
	require.ErrorContains(t, err, "did you mean slots?")
}

func TestSecretsComeFromFilesAndArePrintedMasked(t *testing.T) {
	t.Parallel()
	secret := file(t, "sesame\n")
	urlFile := file(t, "rediss://user:sesame@host:6379/1?x=sesame\n")
	cfg := defaults()
	_, err := settings.Load(&cfg, settings.Source{
		File:   file(t, "sources: [{name: a, token_file: "+secret+"}, {name: b}]"),
		Getenv: env(map[string]string{"REPRISE_REDIS_URL_FILE": urlFile}),
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
`, out.String())
	for _, odd := range []string{"sesame", "redis:sesame", "redis://h/p@ss", "redis://u:se%zz@h"} {
		cfg.Redis.URL = odd
		require.Equal(t, "********", settings.Entries(cfg)[1].Value)
	}
}

func TestFlagsMustBelongToKeys(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.String("x", "", "")
	cfg := defaults()
	_, err := settings.Load(&cfg, settings.Source{Flags: map[string]*pflag.Flag{"nowhere": flags.Lookup("x")}})
	require.ErrorContains(t, err, `flag --x is bound to "nowhere"`)
	require.NoError(t, flags.Parse([]string{"--x="}))
	_, err = settings.Load(&cfg, settings.Source{Flags: map[string]*pflag.Flag{"redis.url": flags.Lookup("x")}})
	require.ErrorContains(t, err, "redis.url: is blank")
}

func TestWhatMayBeLeftOutIsLoadedAndPrintedWhereItStands(t *testing.T) {
	t.Parallel()
	cfg := defaults()
	_, err := settings.Load(&cfg, settings.Source{
		File: file(t, "sources: [{name: a, own: {most: 4}}, {name: b, own: {}}, {name: c}]\nparties: {x: {part: 12.5%, own: {most: 0}}, y: {part: 0.7}, z: {}}"),
	})
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

func TestAFieldThatCannotBeLoadedIsFoundAtOnce(t *testing.T) {
	t.Parallel()
	var bad struct {
		Rooms map[string]struct {
			Doors []complex128 `mapstructure:"doors"`
		} `mapstructure:"rooms"`
	}
	_, err := settings.Load(&bad, settings.Source{})
	require.ErrorContains(t, err, "rooms.doors has type complex128")
}
