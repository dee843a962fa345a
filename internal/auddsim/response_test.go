package auddsim

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"reprise/internal/proctest"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryCodeIsSentWithHTTP200AndAudDsErrorFields(t *testing.T) {
	t.Parallel()
	s := Start(t)
	for code := range messages {
		s.Rule(Rule{Fields: map[string]string{"want": json.Number(itoa(code)).String()}, Code: code})
	}
	for code := range messages {
		for _, path := range []string{"/", "/enterprise/", "/upload/"} {
			f := clip("a.mp3", "data")
			f.path = path
			f.fields["want"], f.fields["audio_id"] = itoa(code), "1"
			r := send(t, s, f)
			require.Equal(t, http.StatusOK, r.status)
			require.Equal(t, code, r.code(t), path)
			require.NotContains(t, r.body, "token-a", "the echo masks the token")
			require.Contains(t, r.body, `"api_token":"t***a"`)
			require.Equal(t, path == "/enterprise/", strings.Contains(r.body, "requested_params"))
			require.NotEmpty(t, r.header.Get("X-Request-Id"))
		}
	}
}

func itoa(n int) string { return string(raw(n)) }

func TestInvalidTokensAndInputsGetTheirErrorCodes(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{Tokens: []string{"token-a"}})
	s.SetToken(Token{Value: "token-b", Deny: []string{PathUpload}})
	with := func(path, token string, f form) form {
		f.path = path
		f.fields = map[string]string{"audio_id": "7"}
		if token != "" {
			f.fields["api_token"] = token
		}
		return f
	}
	file := form{name: "a.mp3", data: "x"}
	for name, c := range map[string]struct {
		f    form
		code int
	}{
		"no token is 901":                {with("/", "", file), 901},
		"an unknown token is 900":        {with("/", "stranger", file), 900},
		"a denied path is 904":           {with("/upload/", "token-b", file), 904},
		"no audio is 700":                {with("/", "token-a", form{}), 700},
		"an empty file is 300":           {with("/", "token-a", form{name: "a.mp3"}), 300},
		"more than 10 MiB is 400":        {with("/", "token-a", form{name: "a.mp3", data: strings.Repeat("x", 10<<20+1)}), 400},
		"an unknown method is 1000":      {with("/fly/", "token-a", file), 1000},
		"no callback URL is 19":          {with("/getCallbackUrl/", "token-a", form{}), 19},
		"upload without audio_id is 701": {form{path: "/upload/", fields: map[string]string{"api_token": "token-a"}, name: "a", data: "x"}, 701},
		"streams check the token":        {with("/getStreams/", "stranger", form{}), 900},
		"streams of a good token":        {with("/getStreams/", "token-a", form{}), 0},
	} {
		require.Equal(t, c.code, send(t, s, c.f).code(t), name)
	}
	s.SetToken(Token{Value: "token-a", Code: 900})
	require.Equal(t, 900, send(t, s, with("/", "token-a", file)).code(t), "a revoked token")
	s.SetToken(Token{Value: "token-a"})
	require.Zero(t, send(t, s, with("/", "token-a", file)).code(t), "an added token")
}

func TestTokenIsFoundInFormAndQuery(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{Tokens: []string{"token-a"}, MatchShare: 1})
	client := newClient(t)
	after := form{name: "a.mp3", data: "x", tail: map[string]string{"api_token": "token-a"}}
	require.NotEmpty(t, send(t, s, after).result(t), "after the file")

	resp, err := client.PostForm(s.URL+"/", url.Values{"api_token": {"token-a"}, "url": {"https://example.test/a.mp3"}})
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	resp, err = client.Get(s.URL + "/?api_token=token-a&url=https%3A%2F%2Fexample.test%2Fa.mp3")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	resp, err = client.PostForm(s.URL+"/", url.Values{"api_token": {"token-a"}, "audio": {base64.StdEncoding.EncodeToString([]byte("x"))}})
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())

	b := s.Bill()
	require.EqualValues(t, 4, b.Units)
	require.EqualValues(t, 2, b.Content(PathRecognize, hashOf("x")).Units, "base64 audio has the hash of its bytes")
	require.EqualValues(t, 2, b.Content(PathRecognize, hashOf("https://example.test/a.mp3")).Units)
}

func TestRecognitionDependsOnlyOnTheContent(t *testing.T) {
	t.Parallel()
	s, other := Start(t), Start(t, Config{Seed: 99})
	matched, client := 0, newClient(t)
	for i := range 200 {
		data := "clip " + itoa(i)
		first := do(client, clip("a.mp3", data).request(t, s.URL))
		require.Equal(t, first.body, do(client, clip("b.ogg", data).request(t, other.URL)).body)
		if first.result(t) != nil {
			matched++
		}
	}
	require.InDelta(t, 100, matched, 30)
	none := Start(t, Config{MatchShare: -1})
	require.Nil(t, send(t, none, clip("a.mp3", "x")).result(t))
	all := Start(t, Config{MatchShare: 1})
	f := clip("a.mp3", "x")
	f.fields["return"] = "spotify,apple_music"
	song := send(t, all, f).result(t)
	for _, key := range []string{"artist", "title", "timecode", "song_link", "spotify", "apple_music"} {
		require.Contains(t, song, key)
	}
	require.NotContains(t, song, "score")
}

func TestRulesChangeTheResponse(t *testing.T) {
	t.Parallel()
	song := Song{Artist: "Sorry", Title: "your IP was blocked"}
	for name, c := range map[string]struct {
		rule  Rule
		check func(t *testing.T, r reply)
	}{
		"51 with a result": {Rule{Code: 51, Result: ResultMatch}, func(t *testing.T, r reply) {
			require.Equal(t, 51, r.code(t))
			require.Contains(t, r.body, `"result":{"artist"`)
		}},
		"51 with null":      {Rule{Code: 51, Result: ResultNull}, func(t *testing.T, r reply) { require.Contains(t, r.body, `"result":null`) }},
		"51 without result": {Rule{Code: 51}, func(t *testing.T, r reply) { require.NotContains(t, r.body, `"result"`) }},
		"a branded denial has a song": {Rule{Code: 19, Songs: []Song{song}}, func(t *testing.T, r reply) {
			require.Equal(t, 19, r.code(t))
			require.Contains(t, r.body, "your IP was blocked")
		}},
		"a message need not be UTF-8": {Rule{Code: 500, MessageBytes: []byte("bad \xff\xfe \"text\"")}, func(t *testing.T, r reply) {
			require.Equal(t, 500, r.code(t))
			require.False(t, utf8.ValidString(r.body))
			require.Contains(t, r.body, "bad \xff\xfe \\\"text\\\"")
		}},
		"a status is an HTML page": {Rule{Status: 403}, func(t *testing.T, r reply) {
			require.Equal(t, 403, r.status)
			require.Contains(t, r.header.Get("Content-Type"), "text/html")
			require.Contains(t, r.body, "<html>")
		}},
		"429 with Retry-After and a code": {Rule{Status: 429, Code: 611, AnswerHeader: map[string]string{"Retry-After": "3"}}, func(t *testing.T, r reply) {
			require.Equal(t, 429, r.status)
			require.Equal(t, 611, r.code(t))
			require.Equal(t, "3", r.header.Get("Retry-After"))
		}},
		"a redirect is not hidden": {Rule{Status: 307, AnswerHeader: map[string]string{"Location": "/elsewhere"}}, func(t *testing.T, r reply) {
			require.Equal(t, 307, r.status)
		}},
		"204 has no body": {Rule{Status: 204}, func(t *testing.T, r reply) {
			require.Equal(t, 204, r.status)
			require.Empty(t, r.body)
		}},
		"a body": {Rule{Body: "hello", AnswerHeader: map[string]string{"Content-Type": "text/x"}}, func(t *testing.T, r reply) {
			require.Equal(t, "hello", r.body)
			require.Equal(t, "text/x", r.header.Get("Content-Type"))
		}},
		"a body as bytes":      {Rule{BodyBytes: []byte{0xff, 0}}, func(t *testing.T, r reply) { require.Equal(t, "\xff\x00", r.body) }},
		"a raw result":         {Rule{RawResult: json.RawMessage(`{"x":1}`)}, func(t *testing.T, r reply) { require.Equal(t, `{"status":"success","result":{"x":1}}`, r.body) }},
		"no result key":        {Rule{Result: ResultAbsent}, func(t *testing.T, r reply) { require.Equal(t, `{"status":"success"}`, r.body) }},
		"a forced song":        {Rule{Songs: []Song{{Title: "Paper Boats"}}}, func(t *testing.T, r reply) { require.Equal(t, "Paper Boats", r.result(t)["title"]) }},
		"a forced null":        {Rule{Result: ResultNull}, func(t *testing.T, r reply) { require.Nil(t, r.result(t)) }},
		"text instead of JSON": {Rule{Fault: FaultText}, func(t *testing.T, r reply) { require.False(t, json.Valid([]byte(r.body))) }},
		"an empty body":        {Rule{Fault: FaultEmpty}, func(t *testing.T, r reply) { require.Empty(t, r.body) }},
		"an array":             {Rule{Fault: FaultArray}, func(t *testing.T, r reply) { require.Equal(t, "[]", r.body) }},
		"no status":            {Rule{Fault: FaultNoStatus}, func(t *testing.T, r reply) { require.Equal(t, `{"result":null}`, r.body) }},
		"truncated JSON in a complete response": {Rule{Fault: FaultTruncated}, func(t *testing.T, r reply) {
			require.Equal(t, 200, r.status)
			require.False(t, json.Valid([]byte(r.body)))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Start(t, Config{MatchShare: 1, Rules: []Rule{c.rule}})
			r := send(t, s, clip("a.mp3", "data"))
			require.NoError(t, r.err)
			c.check(t, r)
			require.EqualValues(t, 1, s.Rules()[0].Used)
		})
	}
}

func TestConnectionFaultsBreakTheRequestAtTheirStage(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 8<<20)
	for name, c := range map[string]struct {
		rule     Rule
		billed   int64
		complete bool
		want     error
	}{
		"reset before the body":             {Rule{Fault: FaultResetBeforeBody}, 0, false, syscall.ECONNRESET},
		"reset before the body, by name":    {Rule{Fault: FaultResetBeforeBody, Name: "*.mp3"}, 0, false, syscall.ECONNRESET},
		"reset within the body":             {Rule{Fault: FaultResetWithinBody, After: 1 << 20}, 0, false, syscall.ECONNRESET},
		"reset within the body, by name":    {Rule{Fault: FaultResetWithinBody, Name: "*.mp3"}, 0, false, syscall.ECONNRESET},
		"reset after the body":              {Rule{Fault: FaultResetAfterBody}, 1, true, syscall.ECONNRESET},
		"reset before the response":         {Rule{Fault: FaultResetBeforeAnswer}, 1, true, syscall.ECONNRESET},
		"end before the response":           {Rule{Fault: FaultResetBeforeAnswer, EOF: true}, 1, true, io.EOF},
		"cut response":                      {Rule{Fault: FaultCutAnswer}, 1, true, io.ErrUnexpectedEOF},
		"reset after the body, not charged": {Rule{Fault: FaultResetAfterBody, Billed: new(false)}, 0, true, syscall.ECONNRESET},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Start(t, Config{MatchShare: 1, Rules: []Rule{c.rule}})
			r := send(t, s, clip("a.mp3", big))
			require.Error(t, r.err)
			// A client that is still writing sees EPIPE, or a connection that the transport has closed.
			writing := errors.Is(r.err, syscall.EPIPE) || errors.Is(r.err, net.ErrClosed)
			assert.True(t, errors.Is(r.err, c.want) || errors.Is(c.want, syscall.ECONNRESET) && writing, "%v", r.err)
			proctest.Eventually(t, func() bool { return s.Bill().Requests == 1 })
			b := s.Bill()
			require.Equal(t, c.billed, b.Units)
			require.Equal(t, c.complete, b.Complete == 1)
			entry := s.Requests(Filter{})[0]
			require.Equal(t, string(c.rule.Fault), entry.Outcome)
			require.Equal(t, "rule-1", entry.Rule)
			switch {
			case c.rule.Fault == FaultResetBeforeBody && c.rule.Name == "":
				require.Zero(t, entry.BodyBytes)
			case c.rule.Fault == FaultResetBeforeBody:
				require.Less(t, entry.BodyBytes, int64(1024))
			case c.rule.After > 0:
				require.Equal(t, c.rule.After, entry.BodyBytes)
			case c.rule.Fault == FaultResetWithinBody:
				require.InDelta(t, 4<<20, entry.BodyBytes, 1024)
			}
		})
	}
}

func TestResetAfterMoreBytesThanTheBodyHasIsPartial(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{Rules: []Rule{{Fault: FaultResetWithinBody, Name: "*", After: 1 << 20}}})
	require.Error(t, send(t, s, clip("a.mp3", "tiny")).err)
	proctest.Eventually(t, func() bool { return s.Bill().Partial == 1 })
	require.Zero(t, s.Bill().Units)
}

func TestEarlyResponseIsSentBeforeTheAudioIsRead(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{Rules: []Rule{{Name: "*.mp3", Status: 413, Early: true}}})
	r := send(t, s, clip("a.mp3", strings.Repeat("x", 100<<10)))
	require.NoError(t, r.err)
	require.Equal(t, 413, r.status)
	require.Less(t, s.Requests(Filter{})[0].BodyBytes, int64(2048))
	require.EqualValues(t, 1, s.Bill().Partial)
}

func TestResponsesCanBeCompressedOrSlow(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{MatchShare: 1, Rules: []Rule{{Name: "*gzip*", Fault: FaultGzip}, {Name: "*slow*", Fault: FaultSlowAnswer, Over: 200 * time.Millisecond}}})
	client := newClient(t)
	client.Transport.(*http.Transport).DisableCompression = true
	r := do(client, clip("gzip.mp3", "x").request(t, s.URL))
	require.Equal(t, "gzip", r.header.Get("Content-Encoding"))
	z, err := gzip.NewReader(strings.NewReader(r.body))
	require.NoError(t, err)
	plain, err := io.ReadAll(z)
	require.NoError(t, err)
	require.True(t, json.Valid(plain))

	start := time.Now()
	require.NotEmpty(t, send(t, s, clip("slow.mp3", "x")).result(t))
	require.GreaterOrEqual(t, time.Since(start), 200*time.Millisecond)
}
