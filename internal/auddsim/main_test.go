package auddsim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// net/http keeps a connection for 500 ms after a response that was sent before the request was read; goleak waits
// for less than that.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// patience is how long a test waits before it fails.
const patience = time.Minute

// form is one request to the simulator.
type form struct {
	path   string // "/" by default
	fields map[string]string
	name   string // "" sends no file
	data   string
	header map[string]string
	tail   map[string]string // fields sent after the file
}

// reply is a response, or the error instead of it.
type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

func (r reply) code(t *testing.T) int {
	t.Helper()
	require.NoError(t, r.err)
	var env struct {
		Error struct {
			Code int `json:"error_code"`
		} `json:"error"`
	}
	require.NoError(t, json.Unmarshal([]byte(r.body), &env), r.body)
	return env.Error.Code
}

func (r reply) result(t *testing.T) map[string]any {
	t.Helper()
	require.NoError(t, r.err)
	var env struct {
		Status string         `json:"status"`
		Result map[string]any `json:"result"`
	}
	require.NoError(t, json.Unmarshal([]byte(r.body), &env), r.body)
	require.Equal(t, "success", env.Status, r.body)
	return env.Result
}

func newClient(t testing.TB) *http.Client {
	tr := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 3 * patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (f form) request(t testing.TB, base string) *http.Request {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for name, value := range f.fields {
		require.NoError(t, w.WriteField(name, value))
	}
	if f.name != "" {
		part, err := w.CreateFormFile("file", f.name)
		require.NoError(t, err)
		_, err = io.WriteString(part, f.data)
		require.NoError(t, err)
	}
	for name, value := range f.tail {
		require.NoError(t, w.WriteField(name, value))
	}
	require.NoError(t, w.Close())
	path := f.path
	if path == "" {
		path = "/"
	}
	req, err := http.NewRequest(http.MethodPost, base+path, bytes.NewReader(b.Bytes()))
	require.NoError(t, err)
	req.GetBody = nil // no automatic replay: one send is one request
	req.Header.Set("Content-Type", w.FormDataContentType())
	for name, value := range f.header {
		req.Header.Set(name, value)
	}
	return req
}

func do(c *http.Client, req *http.Request) reply {
	resp, err := c.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{status: resp.StatusCode, header: resp.Header, body: string(body), err: err}
}

func send(t testing.TB, s *Server, f form) reply {
	t.Helper()
	return do(newClient(t), f.request(t, s.URL))
}

// clip is a recognize request with a token.
func clip(name, data string) form {
	return form{fields: map[string]string{"api_token": "token-a"}, name: name, data: data}
}

func upload(id int, data string) form {
	return form{path: "/upload/", fields: map[string]string{"api_token": "token-a", "audio_id": fmt.Sprint(id)}, name: "track.wav", data: data}
}

func hashOf(data string) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}

// admin calls an administration endpoint and decodes its response into out.
func admin(t testing.TB, s *Server, method, path, body string, out any) int {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+"/_sim/"+path, strings.NewReader(body))
	require.NoError(t, err)
	r := do(newClient(t), req)
	require.NoError(t, r.err)
	if out != nil {
		require.NoError(t, json.Unmarshal([]byte(r.body), out), r.body)
	}
	return r.status
}
