package house

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// settingKeys are the keys that `worker config` prints.
func settingKeys(t *testing.T) map[string]bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command(t, "worker"), "config")
	cmd.Env = []string{}
	out, err := cmd.Output()
	require.NoError(t, err)
	keys := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		key, _, _ := strings.Cut(line, ":")
		keys[key] = true
	}
	return keys
}

// variable is the environment variable of a key.
func variable(key string) string {
	return "REPRISE_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

func TestSettingsInTheReadmeExist(t *testing.T) {
	t.Parallel()
	keys := settingKeys(t)
	rows := regexp.MustCompile("(?m)^\\| `([a-z_0-9.]+)` \\| `([A-Z_0-9]+)`").FindAllStringSubmatch(string(read(t, "README.md")), -1)
	require.NotEmpty(t, rows, "no row found: the check has gone blind")
	for _, row := range rows {
		require.Containsf(t, keys, row[1], "README names the setting %s", row[1])
		require.Equal(t, variable(row[1]), row[2])
	}
}

// A variable nobody reads is not an error at run time, so a slip of the pen
// would go unnoticed.
func TestVariablesInTheImageAndComposeAreRead(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"REPRISE_AUDIO": true} // compose's own: the folder that is mounted
	for key := range settingKeys(t) {
		known[variable(key)] = true
		known[variable(key)+"_FILE"] = true
	}
	for _, name := range []string{"Dockerfile", "docker-compose.yml"} {
		for _, v := range regexp.MustCompile(`REPRISE_[A-Z_0-9]+`).FindAllString(string(read(t, name)), -1) {
			require.Containsf(t, known, v, "%s sets %s, which no worker reads", name, v)
		}
	}
}
