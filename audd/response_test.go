package audd_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"reprise/audd"
)

// recognize makes one call to a server with handler h.
func recognize(t *testing.T, h http.HandlerFunc) (audd.Recognition, error) {
	t.Helper()
	s := serve(t, h)
	out, err := newClient(t, s.URL).Recognize(t.Context(), audd.RecognizeRequest{Audio: audio([]byte("abc"))})
	require.Len(t, s.seen(), 1, "exactly one request")
	return out, err
}

func TestEveryCodeOfTheOpenAPIEnumIsRead(t *testing.T) {
	t.Parallel()
	enum := regexp.MustCompile(`enum: \[(19, 20, 31337[^\]]*)\]`).FindStringSubmatch(fixture(t, "openapi.yaml"))
	require.NotNil(t, enum)
	codes := strings.Split(enum[1], ", ")
	require.Len(t, codes, 27)
	var next http.HandlerFunc
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { next(w, r) })
	c := newClient(t, s.URL)
	calls := 0
	for _, text := range append(codes, "501", "4242") {
		code, err := strconv.Atoi(text)
		require.NoError(t, err)
		for _, status := range []int{200, 401, 429, 503} {
			for _, shape := range []string{
				`{"status":"error","error":{"error_code":%d,"error_message":"no"}}`,
				`{"status":"error","error":{"error_code":"%d","error_message":"no"}}`,
				`{"status":"error","error":{"error_code":%d.0,"error_message":"no"}}`,
				`{"error":{"error_code":" %d ","error_message":"no"}}`,
				`{"status":"error","error_code":%d,"error_message":"no"}`,
			} {
				next = answer(status, fmt.Sprintf(shape, code))
				calls++
				_, err := c.Recognize(t.Context(), audd.RecognizeRequest{Audio: audio([]byte("abc"))})
				e := failed(t, err)
				require.Len(t, s.seen(), calls, "exactly one request")
				require.Equal(t, audd.KindCode, e.Kind)
				require.Equal(t, code, e.Code)
				require.Equal(t, status, e.HTTPStatus)
				require.Equal(t, audd.PhaseAnswered, e.Phase)
				require.Equal(t, "no", e.Message)
				require.Equal(t, "req-1", e.RequestID)
				require.True(t, e.JSON)
				require.False(t, e.Branded)
			}
		}
	}
}

func TestResponsesWithoutACodeAreClassified(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		kind   audd.Kind
		json   bool
	}{
		"HTML 403":                              {403, "<html>blocked</html>", audd.KindHTTP, false},
		"JSON 403":                              {403, `{"message":"Forbidden"}`, audd.KindHTTP, true},
		"404":                                   {404, "not found", audd.KindHTTP, false},
		"408":                                   {408, "", audd.KindHTTP, false},
		"429":                                   {429, "slow down", audd.KindHTTP, false},
		"502":                                   {502, "<html>", audd.KindHTTP, false},
		"521":                                   {521, "<html>", audd.KindHTTP, false},
		"503 with status success":               {503, noMatch, audd.KindHTTP, true},
		"500 error without code":                {500, `{"status":"error"}`, audd.KindHTTP, true},
		"200 HTML":                              {200, "<!doctype html>", audd.KindBody, false},
		"200 empty":                             {200, "", audd.KindBody, false},
		"200 array":                             {200, "[]", audd.KindBody, true},
		"200 null":                              {200, "null", audd.KindBody, true},
		"200 text":                              {200, `"success"`, audd.KindBody, true},
		"200 without status":                    {200, `{"result":null}`, audd.KindBody, true},
		"200 other status":                      {200, `{"status":"-"}`, audd.KindBody, true},
		"200 status of another type":            {200, `{"status":[1],"result":null}`, audd.KindBody, true},
		"200 error without code":                {200, `{"status":"error","error":{"error_message":"no"}}`, audd.KindBody, true},
		"200 error with a code of another type": {200, `{"status":"error","error":{"error_code":{"a":1}}}`, audd.KindBody, true},
		"200 error with a code out of range":    {200, `{"status":"error","error":{"error_code":1e300}}`, audd.KindBody, true},
		"200 text after the JSON":               {200, noMatch + "Warning: in line 3", audd.KindBody, false},
		"201 without JSON":                      {201, "created", audd.KindBody, false},
		"204":                                   {204, "", audd.KindBody, false},
		"300":                                   {300, "", audd.KindHTTP, false},
		"304":                                   {304, "", audd.KindHTTP, false},
		"599":                                   {599, "", audd.KindHTTP, false},
		"200 nested too deeply":                 {200, strings.Repeat("[", 100_000), audd.KindBody, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := recognize(t, answer(c.status, c.body))
			e := failed(t, err)
			require.Equal(t, c.kind, e.Kind, "%v", err)
			require.Equal(t, c.status, e.HTTPStatus)
			require.Zero(t, e.Code)
			require.Equal(t, c.json, e.JSON)
			require.Equal(t, audd.PhaseAnswered, e.Phase)
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, location := range []string{"/elsewhere", "https://elsewhere.test/?token=1", "http://%zz", ""} {
			_, err := recognize(t, func(w http.ResponseWriter, _ *http.Request) {
				if location != "" {
					w.Header().Set("Location", location)
				}
				w.WriteHeader(status)
			})
			e := failed(t, err)
			require.Equal(t, audd.KindHTTP, e.Kind)
			require.Equal(t, status, e.HTTPStatus)
			require.Equal(t, audd.PhaseAnswered, e.Phase)
		}
	}
}

func TestSwitchingProtocolsDoesNotHang(t *testing.T) {
	t.Parallel()
	raw := plain(t, afterRequest(func(c net.Conn) {
		write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")(c)
		drain(0, c)
	}))
	_, err := newClient(t, raw.URL).Recognize(t.Context(), audd.RecognizeRequest{Audio: audio([]byte("abc"))})
	require.Equal(t, 101, failed(t, err).HTTPStatus)
}

func TestRetryAfterIsReadOnErrors(t *testing.T) {
	t.Parallel()
	_, err := recognize(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	require.Equal(t, 3*time.Second, failed(t, err).RetryAfter)
}

func TestGzipIsDecompressed(t *testing.T) {
	t.Parallel()
	packed := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, `{"status":"success","result":{"title":"T"}}`)
		_ = z.Close()
	}
	out, err := recognize(t, packed)
	require.NoError(t, err)
	require.Equal(t, "T", out.Song.Title)
}

func TestTooLargeResponseIsAnError(t *testing.T) {
	t.Parallel()
	_, err := recognize(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":"success","result":"`+strings.Repeat("a", 5<<20)+`"}`)
	})
	e := failed(t, err)
	require.Equal(t, audd.KindBody, e.Kind)
	require.ErrorContains(t, err, "too large")
}

func TestCode51WithAResultIsASuccessWithAWarning(t *testing.T) {
	t.Parallel()
	const deprecated = `{"status":"error","error":{"error_code":"51","error_message":"parameter x is deprecated"}%s}`
	song, err := recognize(t, answer(200, fmt.Sprintf(deprecated, `,"result":{"title":"B"}`)))
	require.NoError(t, err)
	require.Equal(t, "B", song.Song.Title)
	require.Equal(t, "code 51: parameter x is deprecated", song.Warning)

	null, err := recognize(t, answer(200, fmt.Sprintf(deprecated, `,"result":null`)))
	require.NoError(t, err)
	require.Nil(t, null.Song)
	require.NotEmpty(t, null.Warning)

	_, err = recognize(t, answer(200, fmt.Sprintf(deprecated, ``)))
	require.Equal(t, 51, failed(t, err).Code)
	_, err = recognize(t, answer(500, fmt.Sprintf(deprecated, `,"result":null`)))
	require.Equal(t, 51, failed(t, err).Code)

	s := serve(t, answer(200, fmt.Sprintf(deprecated, `,"result":null`)))
	up, err := newClient(t, s.URL).Upload(t.Context(), audd.UploadRequest{Audio: audio([]byte("a"))})
	require.NoError(t, err)
	require.NotEmpty(t, up.Warning)
}

func TestSongInABlockIsNotReturned(t *testing.T) {
	t.Parallel()
	for _, code := range []int{19, 20, 31337} {
		for _, c := range []struct {
			result  string
			branded bool
		}{{`{"artist":"Sorry","title":"your IP was blocked"}`, true}, {`null`, false}, {`{}`, false}, {`[]`, false}} {
			out, err := recognize(t, answer(200, fmt.Sprintf(
				`{"status":"error","error":{"error_code":%d,"error_message":"blocked"},"result":%s}`, code, c.result)))
			e := failed(t, err)
			require.Equal(t, code, e.Code)
			require.Equal(t, c.branded, e.Branded)
			require.Nil(t, out.Song)
			require.NotContains(t, err.Error(), "Sorry")
		}
	}
}

func TestErrorMessageIsOneShortLineOfValidUTF8(t *testing.T) {
	t.Parallel()
	_, err := recognize(t, answer(200, `{"status":"error","error":{"error_code":300,"error_message":"a`+"\xff"+`\n`+strings.Repeat("ä", 400)+`"}}`))
	e := failed(t, err)
	require.True(t, utf8.ValidString(err.Error()))
	require.LessOrEqual(t, len(e.Message), 300)
	require.NotContains(t, e.Message, "\n")
	require.True(t, strings.HasPrefix(e.Message, "a\uFFFD ää"))
}
