package house

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
)

// project reads docker-compose.yml as Docker Compose does.
func project(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions(
		[]string{filepath.Join(root(t), "docker-compose.yml")},
		cli.WithEnv([]string{"REPRISE_ADMIN_PASSWORD=of-the-test"}),
		cli.WithProfiles(profiles),
	)
	require.NoError(t, err)
	p, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	return p
}

func TestComposeKeepsAcknowledgedTasks(t *testing.T) {
	t.Parallel()
	redis := project(t).Services["redis"]
	command := strings.Join(redis.Command, " ")
	require.Contains(t, command, "--appendonly yes")
	require.Contains(t, command, "--appendfsync always")
	require.Contains(t, command, "--maxmemory-policy noeviction")
	require.NotEmpty(t, redis.Volumes, "the append-only file must outlive the container")
	require.NotNil(t, redis.HealthCheck)
	require.Empty(t, redis.Ports, "a Redis without a password must not be published")
}

func TestComposeWorkersWaitForRedisAndHaveTimeToStop(t *testing.T) {
	t.Parallel()
	p := project(t)
	for _, name := range []string{"worker", "ui"} {
		s := p.Services[name]
		require.Equal(t, types.ShellCommand{"worker", "run"}, s.Command, name)
		require.Equal(t, types.ServiceConditionHealthy, s.DependsOn["redis"].Condition, name)
		require.Greater(t, time.Duration(*s.StopGracePeriod), time.Hour, name)
		require.Contains(t, *s.Environment["REPRISE_REDIS_URL"], "redis://redis:", name)
	}
}

func TestComposePublishesTheUIOnLoopbackWithAPassword(t *testing.T) {
	t.Parallel()
	p := project(t, "simulator")
	for name, s := range p.Services {
		for _, port := range s.Ports {
			require.Equalf(t, "127.0.0.1", port.HostIP, "%s", name)
		}
	}
	require.NotEmpty(t, *p.Services["ui"].Environment["REPRISE_ADMIN_PASSWORD"])

	options, err := cli.NewProjectOptions([]string{filepath.Join(root(t), "docker-compose.yml")}, cli.WithEnv(nil))
	require.NoError(t, err)
	_, err = options.LoadProject(t.Context())
	require.ErrorContains(t, err, "REPRISE_ADMIN_PASSWORD")
}

func TestComposeStartsTheSimulatorOnlyInItsProfile(t *testing.T) {
	t.Parallel()
	require.NotContains(t, project(t).Services, "auddsim")
	require.Contains(t, project(t, "simulator").Services, "auddsim")
}

func TestImageIsBuiltFromScratchAndRunsUnprivileged(t *testing.T) {
	t.Parallel()
	var stages, users, last []string
	for line := range strings.Lines(string(read(t, "Dockerfile"))) {
		words := strings.Fields(line)
		switch {
		case len(words) > 1 && words[0] == "FROM":
			stages, last = append(stages, words[1]), nil
		case len(words) > 1 && words[0] == "USER":
			users = append(users, words[1])
		}
		last = append(last, line)
	}
	require.Equal(t, []string{"scratch", "base", "golang:1.26", "base"}, stages)
	require.Equal(t, []string{"65532:65532", "65532:65532"}, users)
	require.True(t, slices.ContainsFunc(last, func(l string) bool { return strings.HasPrefix(l, "USER ") }), "the last stage has a USER")

	gomod := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(read(t, "go.mod")))
	require.Equal(t, "golang:"+gomod[1], stages[2], "the image is built with the Go of go.mod")
}

func TestComposeRunsCommandsAndFlagsThatExist(t *testing.T) {
	t.Parallel()
	for name, s := range project(t, "simulator").Services {
		if s.Build == nil {
			continue
		}
		help := helpOf(t, s.Command[0], s.Command[1:])
		for _, word := range s.Command[1:] {
			if strings.HasPrefix(word, "--") {
				require.Containsf(t, help, word, "%s runs %v", name, s.Command)
			}
		}
	}
}
