package worker_test

import (
	"io"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"reprise/internal/auddsim"
	"reprise/worker"
)

// get asks the admin listener of a running rig.
func get(t *testing.T, method, url string, header http.Header) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	maps.Copy(req.Header, header)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func TestAdminListenerServesHealthMetricsAndTheWebUI(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{MatchShare: 1}, func(o *worker.Options) { o.Admin.Addr = "127.0.0.1:0" })
	p := r.clip("seen.wav")
	r.enqueue(p)
	r.run()
	r.state(p, asynq.TaskStateCompleted, 10*time.Second) // metrics are counted before the ack
	<-r.worker.Ready()
	base := "http://" + r.worker.AdminAddr()
	for path, want := range map[string]string{
		"/healthz":           "ok",
		"/readyz":            `"redis":"ok"`,
		"/metrics":           `reprise_attempts_total{outcome="match",path="recognize"} 1`,
		"/ui/api/queues":     "recognize",
		"/ui/api/redis_info": "redis_version",
		"/ui/":               "<html",
	} {
		status, body := get(t, http.MethodGet, base+path, nil)
		require.Equal(t, http.StatusOK, status, path)
		require.Contains(t, body, want, path)
	}
	status, _ := get(t, http.MethodPost, base+"/ui/api/queues/recognize:pause", nil)
	require.Equal(t, http.StatusForbidden, status, "a write without an origin")
	status, _ = get(t, http.MethodPost, base+"/ui/api/queues/recognize:pause", http.Header{"Origin": {base}})
	require.Equal(t, http.StatusMethodNotAllowed, status, "read-only unless changes are allowed")
	status, _ = get(t, http.MethodPost, base+"/ui/api/queues/recognize:pause", http.Header{"Origin": {"http://evil.example"}})
	require.Equal(t, http.StatusForbidden, status)
}

func TestAdminListenerWithAPasswordRequiresItExceptForHealth(t *testing.T) {
	t.Parallel()
	r := newRig(t, auddsim.Config{}, func(o *worker.Options) { o.Admin = worker.Admin{Addr: "127.0.0.1:0", Password: "choose-one"} })
	r.run()
	<-r.worker.Ready()
	base := "http://" + r.worker.AdminAddr()
	status, _ := get(t, http.MethodGet, base+"/healthz", nil)
	require.Equal(t, http.StatusOK, status)
	for _, path := range []string{"/metrics", "/ui/api/queues", "/"} {
		status, _ = get(t, http.MethodGet, base+path, nil)
		require.Equal(t, http.StatusUnauthorized, status, path)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/metrics", nil)
	require.NoError(t, err)
	req.SetBasicAuth("reprise", "choose-one")
	status, _ = get(t, http.MethodGet, base+"/metrics", req.Header)
	require.Equal(t, http.StatusOK, status)
}

func TestAdminListenerOutsideLoopbackNeedsAPassword(t *testing.T) {
	t.Parallel()
	o := worker.DefaultOptions()
	o.Admin.Addr = "0.0.0.0:8080"
	require.ErrorContains(t, o.Validate(), "admin.password")
	o.Admin.Password = "choose-one"
	require.NotContains(t, o.Validate().Error(), "admin.password")
}
