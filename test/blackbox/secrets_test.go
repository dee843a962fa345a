package blackbox

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"reprise/internal/auddsim"
	"reprise/internal/proctest"
	"reprise/internal/queue/asynqkey"
	"reprise/internal/redistest"
	"reprise/store"
	"reprise/tasks"
	"reprise/test/rig"
)

// signedURL returns a link with a secret signature.
func signedURL(name string) string {
	return "https://reader:" + secretSignature + "@bucket.example/" + name + ".mp3?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=" +
		time.Now().UTC().Format("20060102T150405Z") + "&X-Amz-Expires=86400&X-Amz-Signature=" + secretSignature
}

// leaky returns a message of AudD, or of a proxy in front of it, that repeats
// secrets: the token, a signed link and, for a URL, its bare signature.
func leaky(name string, file bool) string {
	message := "no access to " + signedURL(name) + " with api_token=" + secretToken + " or " + secretToken
	if file {
		return message
	}
	return message + ", " + secretSignature
}

// failure is a way a call fails, for the inputs that have its name.
type failure struct {
	name string
	rule auddsim.Rule
}

func code(n int) failure { return failure{fmt.Sprintf("code-%d-", n), auddsim.Rule{Code: n}} }

func status(n int) failure {
	name := fmt.Sprintf("status-%d-", n)
	return failure{name, auddsim.Rule{Status: n, AnswerHeader: map[string]string{"Retry-After": "1", "Location": signedURL(name)}}}
}

func broken(f auddsim.Fault) failure {
	return failure{strings.ReplaceAll(string(f), "_", "-") + "-", auddsim.Rule{Fault: f}}
}

// rules make each failure happen twice, to its file and to its URL, with texts
// that contain secrets.
func rules(failures []failure) []auddsim.Rule {
	var out []auddsim.Rule
	for _, f := range failures {
		for _, file := range []bool{true, false} {
			r := f.rule
			r.Path, r.Times = auddsim.PathRecognize, 1
			if r.Code != 0 {
				r.Message = leaky(f.name, file)
			} else if r.Status != 0 {
				r.Body = "<html>" + leaky(f.name, file)
			}
			header := map[string]string{"X-Request-Id": secretToken}
			if !file {
				header["X-Request-Id"] = secretSignature
			}
			maps.Copy(header, r.AnswerHeader)
			r.AnswerHeader = header
			if file {
				r.Name = f.name + "*"
			} else {
				r.URL = "*/" + f.name + "*"
			}
			out = append(out, r)
		}
	}
	return out
}

// After passing and faults other calls go on, so one worker meets them all.
// failures that halt block the account or the path, so each of them has its own worker.
var (
	passing = []failure{
		code(40), code(50), code(51), code(100), code(300), code(400), code(500), code(501), code(600), code(601), code(602), code(610),
		code(700), code(701), code(702), code(906), code(907), code(1000),
		status(302), status(400), status(404), status(408), status(413), status(415), status(418), status(429), status(500), status(502), status(503),
	}
	faults = []failure{
		broken(auddsim.FaultResetBeforeBody), broken(auddsim.FaultResetWithinBody), broken(auddsim.FaultResetAfterBody),
		broken(auddsim.FaultResetBeforeAnswer), broken(auddsim.FaultTruncated), broken(auddsim.FaultCutAnswer), broken(auddsim.FaultText),
		broken(auddsim.FaultEmpty), broken(auddsim.FaultArray), broken(auddsim.FaultNoStatus),
	}
	halting = []failure{
		code(19), code(20), code(31337), code(611), code(900), code(901), code(902), code(903), code(904), code(905), status(401), status(403),
	}
)

// secretRig starts a rig whose token, Redis password and inputs are secrets.
func secretRig(t *testing.T, failures []failure) *rig.Rig {
	t.Helper()
	r := newRig(t, auddsim.Config{Rules: rules(failures)}, redistest.Password(secretPassword))
	r.Token = secretToken
	return r
}

func TestNoSecretIsLeakedAfterAnyAnswer(t *testing.T) {
	t.Parallel()
	groups := map[string][]failure{"answers": passing, "faults": faults}
	for _, f := range halting {
		groups[strings.TrimSuffix(f.name, "-")] = []failure{f}
	}
	for name, failures := range groups {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := secretRig(t, failures)
			// The circuit breaker would block the source between the failures.
			w := r.WorkerWith([]string{"REPRISE_BREAKER_FAILURES=1000"}, "--recognize-slots", "4")
			var inputs []string
			for _, f := range failures {
				inputs = append(inputs, signedURL(f.name+"signed"), clip(r, "good-"+f.name+".wav"), clip(r, f.name+"file.wav"))
			}
			payloads := enqueue(r, inputs...)
			waitFailures(r, payloads, len(failures))
			searchAll(r, w, payloads)
		})
	}
}

// waitFailures waits until every failure has happened and has its call row.
func waitFailures(r *rig.Rig, payloads []tasks.Payload, failures int) {
	r.T.Helper()
	var bad []string
	proctest.Eventually(r.T, func() bool {
		bad = nil
		calls := r.Calls(store.CallFilter{})
		called := map[string]bool{}
		for _, c := range calls {
			called[c.Key] = true
		}
		for _, p := range payloads {
			if !called[p.Key] {
				bad = append(bad, p.Input.Path+p.Input.URL)
			}
		}
		failed := slices.ContainsFunc(calls, func(c store.Call) bool { return c.Verdict != tasks.Done })
		return len(bad) == 0 || failures == 1 && failed // after a halt no task runs
	}, "never called: %s", func() any { return bad })
	var acted int64
	for _, rule := range r.Sim.Rules() {
		acted += rule.Used
	}
	require.GreaterOrEqual(r.T, acted, int64(2*failures-1), "failures that happened")
}

// searchAll searches the worker's pages, Redis, the store and, after a kill, the
// output of the worker.
func searchAll(r *rig.Rig, w *proctest.Process, payloads []tasks.Payload) {
	r.T.Helper()
	s := newSearch(r.T, payloads...)
	addr, _ := w.Line("ready", time.Second)["admin"].(string)
	s.pages(addr, payloads)
	s.redis(r)
	s.store(r)
	w.Kill()
	s.process(w)
	for _, p := range payloads {
		if len(callsOf(r, p)) == 0 {
			continue // the source was halted before
		}
		require.Contains(r.T, w.Log.String(), p.Key)
		if p.Input.URL != "" {
			require.Contains(r.T, w.Log.String(), "bucket.example", "the log names the input without its signature")
		}
	}
	require.Greater(r.T, s.places, 40, "places searched")
}

func TestNoSecretIsLeakedWhileACallIsInFlightAndTheStoreIsLocked(t *testing.T) {
	t.Parallel()
	r := secretRig(t, nil)
	r.Sim.Hold(auddsim.Hold{Stage: auddsim.StageBeforeAnswer, URL: "*flight*"})
	w := r.Worker()
	payloads := enqueue(r, signedURL("in-flight"))
	r.WaitHeld(1)
	unlock := r.LockStore("IMMEDIATE") // before the call can time out, however long the search takes
	defer unlock()
	addr, _ := w.Line("ready", time.Second)["admin"].(string)
	s := newSearch(t, payloads...)
	proctest.Eventually(t, func() bool { // asynq writes the list of running tasks every 5 s
		return len(r.Redis.Keys(t.Context(), asynqkey.Workers+"*").Val()) > 0
	})
	s.pages(addr, payloads)
	s.redis(r)
	r.Sim.Release("")
	proctest.Eventually(t, func() bool { return r.Redis.HLen(t.Context(), storeOutbox).Val() > 0 })
	s.redis(r)
	s.process(w)
}

func TestNoSecretIsLeakedByInvalidInputs(t *testing.T) {
	t.Parallel()
	r := secretRig(t, nil)
	gone, changed := clip(r, "gone.wav"), clip(r, "changed.wav")
	payloads := enqueue(r, gone, changed)
	require.NoError(t, os.Remove(gone))
	require.NoError(t, os.WriteFile(changed, []byte("other"), 0o600))

	good := enqueue(r, signedURL("good"))[0]
	old, err := tasks.New(tasks.Recognize, tasks.Input{Kind: tasks.URLInput, URL: signedURL("expired"), ExpiresAt: time.Now().Unix() - 60}, tasks.Params{}, 0)
	require.NoError(t, err)
	task, err := good.Task("")
	require.NoError(t, err)
	raw := string(task.Payload())
	client := asynq.NewClientFromRedisClient(r.Redis)
	s := newSearch(t, append(payloads, good, old)...)
	odd := []string{
		strings.Replace(raw, "https://reader", "ftp://reader", 1), strings.Replace(raw, "bucket.example/", "bucket.example/%zz", 1),
		strings.Replace(raw, `"kind":"url"`, `"kind":"`+secretSignature+`"`, 1), strings.Replace(raw, `"v":1`, `"v":1,"`+secretSignature+`":1`, 1),
		strings.Replace(raw, `"v":1`, `"v":99`, 1), strings.Replace(raw, `"v":1`, `"v":"`+secretSignature+`"`, 1), raw[:len(raw)-20], secretSignature,
	}
	for i, text := range odd {
		require.True(t, i == len(odd)-1 || text != raw)
		s.allow([]byte(text))
		_, err := client.EnqueueContext(t.Context(), asynq.NewTask(task.Type(), []byte(text)), asynq.Queue("recognize"), asynq.TaskID(fmt.Sprint("odd-", i)), asynq.MaxRetry(tasks.MaxRetry), asynq.Timeout(tasks.Recognize.Timeout()))
		require.NoError(t, err)
	}
	expired, err := old.Task("")
	require.NoError(t, err)
	_, err = client.EnqueueContext(t.Context(), expired)
	require.NoError(t, err)

	w := r.Worker()
	proctest.Eventually(t, func() bool {
		n := r.Counts(recognize)
		return n.Completed == 1 && n.Archived >= len(odd)-1+2 && n.Pending+n.Active == 0
	})
	addr, _ := w.Line("ready", time.Second)["admin"].(string)
	s.pages(addr, append(payloads, good, old))
	s.redis(r)
	s.store(r)
	w.Kill()
	s.process(w)
}

func TestNoSecretIsLeakedWhenAudDIsUnreachable(t *testing.T) {
	t.Parallel()
	closed := "http://127.0.0.1:1/"
	hop := func(addr string) string { return "http://user:" + secretPassword + "@" + addr }
	for name, c := range map[string]struct {
		base string
		env  func(sim string) []string
	}{
		"refused":                {closed, nil},
		"not TLS":                {"https://SIM/", nil},
		"unreachable proxy":      {"http://audd.invalid/", func(string) []string { return []string{"HTTP_PROXY=" + hop("127.0.0.1:1")} }},
		"unreachable proxy, TLS": {"https://audd.invalid/", func(string) []string { return []string{"HTTPS_PROXY=" + hop("127.0.0.1:1")} }},
		"proxy without TLS":      {"https://audd.invalid/", func(sim string) []string { return []string{"HTTPS_PROXY=" + hop(sim)} }},
		"proxy URL invalid":      {"https://audd.invalid/", func(string) []string { return []string{"HTTPS_PROXY=http://user:" + secretPassword + "@%zz:1"} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := secretRig(t, nil)
			sim := strings.TrimPrefix(r.Sim.URL, "http://")
			env := r.Env()
			if c.env != nil {
				env = append(env, c.env(sim)...)
			}
			base := strings.Replace(c.base, "SIM", sim, 1)
			w := proctest.Start(t, env, "worker", "run", "--admin", "127.0.0.1:0", "--base-url", base, "--enterprise-url", base+"enterprise/")
			w.Line("ready", patience)
			payloads := enqueue(r, signedURL("unreachable"), clip(r, "unreachable.wav"))
			waitFailures(r, payloads, 0)
			for _, p := range payloads {
				require.Equal(t, tasks.UnavailableUnsent, callsOf(r, p)[0].Outcome, callsOf(r, p)[0].Reason)
			}
			searchAll(r, w, payloads)
		})
	}
}

func TestNoSecretIsLeakedByCommands(t *testing.T) {
	t.Parallel()
	r := secretRig(t, nil)
	r.Sim.SetToken(auddsim.Token{Value: secretToken, Code: 900})
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and never sends a byte
	require.NoError(t, err)
	defer silent.Close()
	addr := r.Server.Addr()
	s := newSearch(t)
	urls := map[string]string{
		"right": r.RedisURL(), "dead": "redis://user:" + secretPassword + "@127.0.0.1:1/0", "unknown host": "redis://:" + secretPassword + "@redis.invalid:6379/0",
		"port": "redis://:" + secretPassword + "@127.0.0.1:port/0", "scheme": "http://:" + secretPassword + "@" + addr,
		"escape": "redis://:%zz" + secretPassword + "@" + addr, "database": "redis://:" + secretPassword + "@" + addr + "/zero",
		"option": "redis://:" + secretPassword + "@" + addr + "/0?nothing=1", "no TLS": "rediss://:" + secretPassword + "@" + addr,
		"refused": "redis://someone:wrong" + secretPassword + "@" + addr, "just the password": secretPassword,
	}
	t.Run("with Redis URL", func(t *testing.T) {
		for name, url := range urls {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				env := append(r.Env(), "REPRISE_REDIS_URL="+url, "REPRISE_ADMIN_PASSWORD="+secretPassword)
				at := []string{"--base-url", r.Sim.URL, "--enterprise-url", r.Sim.EnterpriseURL}
				for _, args := range [][]string{
					{"worker", "run"}, {"worker", "check"}, {"worker", "config"}, {"worker", "config", "--redis", url},
					{"enqueue", "recognize", signedURL("said"), "--json"}, {"enqueue", "recognize", signedURL("said")},
					{"enqueue", "recognize", signedURL("said"), "--dry-run"}, {"enqueue", "recognize", signedURL("%zz"), signedURL("said") + "\x01", "--redis", url},
				} {
					if args[0] == "worker" && args[1] != "config" {
						args = append(args, at...)
					}
					p := proctest.Run(t, env, args[0], args[1:]...)
					require.NotEmpty(t, p.Out.String()+p.Log.String(), args[:2])
					(&search{t: t}).process(p)
					require.NotContains(t, p.Log.String(), "panic", args[:2])
				}
			})
		}
	})
	payloads, err := texts(t, r.Store.DB(), "SELECT payload FROM task")
	require.NoError(t, err)
	require.NotEmpty(t, payloads, "one of the URLs is valid")
	for _, p := range payloads {
		s.allow([]byte(p))
	}
	s.redis(r)
	s.store(r)
}

// Redis dies while a worker runs, and comes back with another password.
func TestNoSecretIsLeakedWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	r := secretRig(t, nil)
	w := r.Worker()
	addr, _ := w.Line("ready", time.Second)["admin"].(string)
	r.Server.Kill()
	proctest.Eventually(t, func() bool {
		resp, err := http.Get("http://" + addr + "/readyz")
		return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusServiceUnavailable
	})
	s := newSearch(t)
	s.pagesOf(addr, "/metrics", "/readyz")
	r.Server.Start()
	require.NoError(t, r.Server.Client().ConfigSet(t.Context(), "requirepass", "another").Err())
	r.Proxy.Cut()
	r.Proxy.Restore()
	proctest.Never(t, 3*time.Second, func() bool { return !w.Running() })
	w.Kill()
	s.process(w)
}
