package settings_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/settings"
)

func TestVariablesThatNobodyReadsAreNamed(t *testing.T) {
	t.Parallel()
	known := []string{
		"PATH=x", "REPRISE_SLOTS=1", "REPRISE_REDIS_URL_FILE=/f", "REPRISE_CONFIG=/c", "REPRISE_DATA=/d",
		"REPRISE_SESAME=", "REPRISE_MY_TOKEN=sesame",
		"REPRISE_REDIS_PORT=tcp://h:6379", "REPRISE_REDIS_SERVICE_HOST=h", "REPRISE_REDIS_PORT_6379_TCP_ADDR=h", // Kubernetes
		"REPRISE_SERVICE_HOST=h", "REPRISE_SERVICE_PORT_HTTP=80", "REPRISE_PORT=tcp://h:80", "REPRISE_PORT_80_TCP=tcp://h:80", // of a service reprise
	}
	require.NoError(t, settings.UnknownVariables(new(config), known, false, "REPRISE_MY_TOKEN"))
	for name, c := range map[string]struct {
		variable, want string
		shared         string
	}{
		"a typing error":        {"REPRISE_SLOST=sesame", "REPRISE_SLOST: unknown variable, did you mean REPRISE_SLOTS?", "REPRISE_SLOST"},
		"of a secret's file":    {"REPRISE_REDIS_URL_FIEL=sesame", "did you mean REPRISE_REDIS_URL_FILE?", "REPRISE_REDIS_URL_FIEL"},
		"cut short":             {"REPRISE_REDIS=sesame", "did you mean REPRISE_REDIS_URL?", "REPRISE_REDIS"},
		"of no service":         {"REPRISE_ADMIN_PORT=0.0.0.0:9999", "REPRISE_ADMIN_PORT: unknown variable", ""},
		"of no key":             {"REPRISE_ELEPHANT=sesame", "REPRISE_ELEPHANT: unknown variable", ""},
		"of a list of sections": {"REPRISE_SOURCES_ONE_TOKEN=sesame", "sources can stand in a settings file only", "REPRISE_SOURCES_ONE_TOKEN"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := settings.UnknownVariables(new(config), append(known, c.variable), false, "REPRISE_MY_TOKEN")
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "sesame")
			err = settings.UnknownVariables(new(config), []string{c.variable}, true)
			if c.shared == "" {
				require.NoError(t, err, "it may belong to another command")
				return
			}
			require.ErrorContains(t, err, c.shared)
		})
	}
}

func TestTheEnvironmentIsReadAsTheProcessWould(t *testing.T) {
	t.Parallel()
	getenv := settings.Getenv([]string{"A=1", "B=x=y", "A=2", "C"})
	require.Equal(t, []string{"2", "x=y", "", ""}, []string{getenv("A"), getenv("B"), getenv("C"), getenv("D")})
}

func TestErrorsSayWhereAValueCameFrom(t *testing.T) {
	t.Parallel()
	origin := func(key string) string {
		return map[string]string{"slots": "--slots", "redis.url": "REPRISE_REDIS_URL"}[key]
	}
	require.NoError(t, settings.WithOrigin(nil, origin))
	cause := errors.New("slots -4: want 0 to 9")
	err := settings.WithOrigin(errors.Join(cause, errors.New("redis.url: empty"), errors.New("wait 5: no"), errors.New("no key")), origin)
	require.EqualError(t, err, "slots (--slots) -4: want 0 to 9\nredis.url (REPRISE_REDIS_URL): empty\nwait 5: no\nno key")
	require.ErrorIs(t, err, cause)
}
