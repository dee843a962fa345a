package settings_test

import (
	"errors"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"reprise/internal/settings"
)

func TestUnknownVariablesAreErrors(t *testing.T) {
	t.Parallel()
	known := []string{
		"PATH=x", "REPRISE_SLOTS=1", "REPRISE_DATA=/d", "REPRISE_SESAME=",
		"REPRISE_CONFIG=" + file(t, "variable: REPRISE_MY_TOKEN"), "REPRISE_MY_TOKEN=sesame", "REPRISE_REDIS_URL_FILE=" + file(t, "redis://h"),
		"REPRISE_REDIS_PORT=tcp://h:6379", "REPRISE_REDIS_SERVICE_HOST=h", "REPRISE_REDIS_PORT_6379_TCP_ADDR=h", // Kubernetes
		"REPRISE_SERVICE_HOST=h", "REPRISE_SERVICE_PORT_HTTP=80", "REPRISE_PORT=tcp://h:80", "REPRISE_PORT_80_TCP=tcp://h:80", // of a service reprise
	}
	load := func(shared bool, environ ...string) error {
		_, err := settings.Load(new(config), settings.Source{Environ: environ, Shared: shared})
		return err
	}
	require.NoError(t, load(false, known...))
	for name, c := range map[string]struct {
		variable, want string
		shared         string
	}{
		"a typo":                     {"REPRISE_SLOST=sesame", "REPRISE_SLOST: unknown variable, did you mean REPRISE_SLOTS?", "REPRISE_SLOST"},
		"a typo of a secret's file":  {"REPRISE_REDIS_URL_FIEL=sesame", "did you mean REPRISE_REDIS_URL_FILE?", "REPRISE_REDIS_URL_FIEL"},
		"cut short":                  {"REPRISE_REDIS=sesame", "did you mean REPRISE_REDIS_URL?", "REPRISE_REDIS"},
		"like one of Kubernetes":     {"REPRISE_ADMIN_PORT=0.0.0.0:9999", "REPRISE_ADMIN_PORT: unknown variable", ""},
		"no setting":                 {"REPRISE_ELEPHANT=sesame", "REPRISE_ELEPHANT: unknown variable", ""},
		"a setting of the file only": {"REPRISE_SOURCES_ONE_TOKEN=sesame", "sources can be set in a settings file only", "REPRISE_SOURCES_ONE_TOKEN"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := load(false, append(known, c.variable)...)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "sesame")
			err = load(true, c.variable)
			if c.shared == "" {
				require.NoError(t, err, "it may belong to another command")
				return
			}
			require.ErrorContains(t, err, c.shared)
		})
	}
}

func TestGetenvReadsTheLastOfSeveralVariables(t *testing.T) {
	t.Parallel()
	environ := []string{"A=1", "B=x=y", "A=2", "C"}
	for name, want := range map[string]string{"A": "2", "B": "x=y", "C": "", "D": ""} {
		require.Equal(t, want, settings.Getenv(environ, name))
	}
}

func TestErrorsNameTheVariableOrFlagOfAKey(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.Int("slots", 1, "")
	require.NoError(t, flags.Parse([]string{"--slots=4"}))
	loaded, err := settings.Load(new(config), settings.Source{
		Environ: []string{"REPRISE_REDIS_URL=redis://h", "REPRISE_SLOTS=3"}, Flags: flags, FlagNames: map[string]string{"slots": "slots"},
	})
	require.NoError(t, err)
	require.NoError(t, loaded.WithOrigin(nil))
	cause := errors.New("slots -4: must be 0 to 9")
	err = loaded.WithOrigin(errors.Join(cause, errors.New("redis.url: empty"), errors.New("wait 5: no"), errors.New("no key")))
	require.EqualError(t, err, "slots (--slots) -4: must be 0 to 9\nredis.url (REPRISE_REDIS_URL): empty\nwait 5: no\nno key")
	require.ErrorIs(t, err, cause)
}
