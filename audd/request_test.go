package audd_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/audd"
)

const noMatch = `{"status":"success","result":null}`

func TestRecognizeSendsTokenFieldsAndFileInThatOrder(t *testing.T) {
	t.Parallel()
	s := serve(t, answer(200, noMatch))
	data := bytes.Repeat([]byte("x"), 100_000)
	_, err := newClient(t, s.URL).Recognize(t.Context(), audd.RecognizeRequest{
		Audio: audio(data), Return: []string{"apple_music", "spotify"}, Market: "de",
	})
	require.NoError(t, err)
	require.Len(t, s.seen(), 1)
	r := s.seen()[0]
	require.Equal(t, []part{
		{"api_token", "", token},
		{"return", "", "apple_music,spotify"},
		{"market", "", "de"},
		{"file", "clip.mp3", string(data)},
	}, r.parts)
	require.Equal(t, "/", r.path)
	require.Empty(t, r.query, "the URL has no query")
	require.Greater(t, r.length, int64(len(data)), "Content-Length is announced")
	require.Equal(t, "HTTP/1.1", r.proto)
	require.Empty(t, r.header.Get("Idempotency-Key"))
	require.Empty(t, r.header.Get("Expect"))
	require.Equal(t, "gzip", r.header.Get("Accept-Encoding"))
	require.Equal(t, "reprise", r.header.Get("User-Agent"))
}

func TestURLInputIsAFormField(t *testing.T) {
	t.Parallel()
	s := serve(t, answer(200, noMatch))
	_, err := newClient(t, s.URL).Recognize(t.Context(), audd.RecognizeRequest{Audio: audd.Audio{URL: "https://a.test/x.mp3?sig=1"}})
	require.NoError(t, err)
	require.Equal(t, []part{{"api_token", "", token}, {"url", "", "https://a.test/x.mp3?sig=1"}}, s.seen()[0].parts)
	require.Empty(t, s.seen()[0].query)
}

func TestEnterpriseSendsTheSetFieldsAndAccurateOffsets(t *testing.T) {
	t.Parallel()
	s := serve(t, answer(200, `{"status":"success","result":[]}`))
	c := newClient(t, s.URL)
	for _, in := range []audd.EnterpriseRequest{
		{Audio: audio([]byte("a"))},
		{Audio: audio([]byte("a")), Skip: new(0), Every: new(1), Limit: new(3), SkipFirstSeconds: 60, AccurateOffsets: new(false)},
		{Audio: audd.Audio{URL: "https://a.test/v"}, UseTimecode: true, AccurateOffsets: new(true)},
	} {
		_, err := c.Enterprise(t.Context(), in)
		require.NoError(t, err)
	}
	require.Equal(t, "/enterprise/", s.seen()[0].path)
	require.Equal(t, map[string]string{"api_token": token, "accurate_offsets": "true", "file": "a"}, s.seen()[0].values())
	require.Equal(t, map[string]string{
		"api_token": token, "skip": "0", "every": "1", "limit": "3", "skip_first_seconds": "60", "accurate_offsets": "false", "file": "a",
	}, s.seen()[1].values())
	require.Equal(t, map[string]string{
		"api_token": token, "use_timecode": "true", "accurate_offsets": "true", "url": "https://a.test/v",
	}, s.seen()[2].values())
}

func TestUploadAndCheckTokenUseTheirOwnPaths(t *testing.T) {
	t.Parallel()
	s := serve(t, answer(200, noMatch))
	c := newClient(t, s.URL)
	up, err := c.Upload(t.Context(), audd.UploadRequest{Audio: audio([]byte("a")), AudioID: 9_007_199_254_740_993})
	require.NoError(t, err)
	require.Equal(t, 200, up.HTTPStatus)
	require.Equal(t, "req-1", up.RequestID)
	require.Positive(t, up.Latency)
	require.NoError(t, c.CheckToken(t.Context()))
	require.Equal(t, "/upload/", s.seen()[0].path)
	require.Equal(t, "9007199254740993", s.seen()[0].values()["audio_id"])
	require.Equal(t, "/getStreams/", s.seen()[1].path)
	require.Equal(t, map[string]string{"api_token": token}, s.seen()[1].values())
}

func TestOnlyTheLastElementOfAFileNameIsSent(t *testing.T) {
	t.Parallel()
	s := serve(t, answer(200, noMatch))
	c := newClient(t, s.URL)
	for name, want := range map[string]string{
		"":                              "audio",
		"/":                             "audio",
		"/home/ann/private/song.mp3":    "song.mp3",
		"a\r\nX-Evil: 1.mp3":            "a__X-Evil: 1.mp3",
		`he said "hi".mp3`:              `he said "hi".mp3`,
		"bad\xffutf8.mp3":               "bad_utf8.mp3",
		strings.Repeat("ä", 300):        strings.Repeat("ä", 100),
		"name; filename=\"evil.exe\".a": "name; filename=\"evil.exe\".a",
	} {
		in := audio([]byte("a"))
		in.Name = name
		_, err := c.Recognize(t.Context(), audd.RecognizeRequest{Audio: in})
		require.NoError(t, err)
		requests := s.seen()
		last := requests[len(requests)-1].parts
		require.Equal(t, want, last[len(last)-1].file, "name %q", name)
	}
}

func TestHTTP11IsUsedEvenIfClientAndServerSupportHTTP2(t *testing.T) {
	t.Parallel()
	var proto string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proto = r.Proto
		answer(200, noMatch)(w, r)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	c := newClient(t, s.URL, func(cfg *audd.Config) { cfg.Transport = s.Client().Transport })
	_, err := c.Recognize(t.Context(), audd.RecognizeRequest{Audio: audio([]byte("a"))})
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1", proto)
}

func TestTokenIsReadForEveryCall(t *testing.T) {
	t.Parallel()
	s := serve(t, answer(200, noMatch))
	current := " first\n"
	c := newClient(t, s.URL, func(cfg *audd.Config) { cfg.Token = func() string { return current } })
	require.NoError(t, c.CheckToken(t.Context()))
	current = "second"
	require.NoError(t, c.CheckToken(t.Context()))
	require.Equal(t, "first", s.seen()[0].values()["api_token"], "surrounding space is removed")
	require.Equal(t, "second", s.seen()[1].values()["api_token"])
}

func TestMissingTokenIsCode901AndUnsent(t *testing.T) {
	t.Parallel()
	s := serve(t, answer(200, noMatch))
	c := newClient(t, s.URL, func(cfg *audd.Config) { cfg.Token = func() string { return " \n" } })
	e := failed(t, c.CheckToken(t.Context()))
	require.Equal(t, audd.KindCode, e.Kind)
	require.Equal(t, 901, e.Code)
	require.Equal(t, audd.PhaseUnsent, e.Phase)
	require.Empty(t, s.seen())
}
