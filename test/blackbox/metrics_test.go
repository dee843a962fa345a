package blackbox

import (
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/dashboards"
	"reprise/internal/auddsim"
	"reprise/internal/proctest"
)

func TestWorkerExportsTheMetricsThatDashboardsMayUse(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{})
	addr, _ := r.Worker().Line("ready", patience)["admin"].(string)
	r.WaitFinished(enqueue(r, clip(r, "metrics.wav"))[0])
	listed := map[string]string{}
	for _, m := range dashboards.Metrics {
		listed[m.Name] = m.Kind
	}
	exported := map[string]string{}
	proctest.Eventually(t, func() bool { // the queue metrics follow once the queues are read
		resp, err := http.Get("http://" + addr + "/metrics")
		require.NoError(t, err)
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^# TYPE (reprise_\w+) (\w+)$`).FindAllStringSubmatch(string(raw), -1) {
			exported[m[1]] = m[2]
		}
		return len(exported) >= len(listed)
	}, "exported %v", func() any { return exported })
	require.Equal(t, listed, exported)
}
