package house

import (
	"os"
	"os/exec"
	"path/filepath"
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
	require.NotEmpty(t, rows, "rows of the table")
	for _, row := range rows {
		require.Containsf(t, keys, row[1], "README names the setting %s", row[1])
		require.Equal(t, variable(row[1]), row[2])
	}
}

// block returns the only code block of a language in README.md.
func block(t *testing.T, lang string) string {
	t.Helper()
	found := regexp.MustCompile("(?s)```"+lang+"\n(.*?)```").FindAllStringSubmatch(string(read(t, "README.md")), -1)
	require.Lenf(t, found, 1, "README.md must have exactly one block of %s", lang)
	return found[0][1]
}

// runWith runs a command with this environment only.
func runWith(t *testing.T, environ []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command(t, name), args...)
	cmd.Env = environ
	out, err := cmd.CombinedOutput()
	require.NoErrorf(t, err, "%s", out)
	return string(out)
}

func TestSettingsFileInTheReadmeIsValid(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "reprise.yaml")
	require.NoError(t, os.WriteFile(path, []byte(block(t, "yaml")), 0o600))
	out := runWith(t, []string{"TOKEN_MAIN=a", "TOKEN_SPARE=b"}, "worker", "config", "--config", path)
	for _, line := range []string{
		"sources.main.token_env: TOKEN_MAIN", "sources.spare.limits.recognize.concurrency: 4", "limits.global.units_per_day: 50000",
		"groups.live.weight: 5", "groups.archive.ceiling: 70%", "groups.archive.source: spare",
	} {
		require.Contains(t, out, line+"\n")
	}
}

func TestManifestInTheReadmeIsValid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tracks.csv"), []byte(block(t, "csv")), 0o600))
	require.NoError(t, os.Symlink(filepath.Join(root(t), "examples"), filepath.Join(dir, "examples")))
	out := runWith(t, []string{"REPRISE_DATA=" + dir}, "enqueue", "upload", "--manifest", filepath.Join(dir, "tracks.csv"), "--dry-run")
	require.Contains(t, out, "found 1   to queue 1 ")
}

// A worker does not start with an unknown variable.
func TestVariablesInTheImageAndComposeExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"REPRISE_AUDIO": true} // used by docker-compose.yml only: the mounted folder
	for key := range settingKeys(t) {
		known[variable(key)] = true
		known[variable(key)+"_FILE"] = true
	}
	for _, name := range []string{"Dockerfile", "docker-compose.yml"} {
		for _, v := range regexp.MustCompile(`REPRISE_[A-Z_0-9]+`).FindAllString(string(read(t, name)), -1) {
			require.Containsf(t, known, v, "%s sets %s, which is no setting", name, v)
		}
	}
}
