package audd

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestParseOffsetReadsEveryFormat(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]time.Duration{
		`"00:24"`: 24 * time.Second, `"75:12"`: 75*time.Minute + 12*time.Second, `"01:02:03"`: time.Hour + 2*time.Minute + 3*time.Second,
		`"36"`: 36 * time.Second, `36`: 36 * time.Second, `"36.5"`: 36500 * time.Millisecond, `0`: 0, `" 00:12 "`: 12 * time.Second,
		`"100:00:00"`: 100 * time.Hour, `12.0`: 12 * time.Second, `"00:12.25"`: 12250 * time.Millisecond,
	} {
		got, ok := parseOffset(json.RawMessage(raw))
		require.True(t, ok, raw)
		require.Equal(t, want, got, raw)
	}
	for _, raw := range []string{``, `null`, `""`, `"x"`, `"1:2:3:4"`, `":"`, `"1:"`, `-1`, `"-00:12"`, `[]`, `{}`, `"1.5:00"`, `1e300`, `"NaN"`, `"Inf"`, `"99999999999999999999"`, `"1.2.3"`} {
		_, ok := parseOffset(json.RawMessage(raw))
		require.False(t, ok, raw)
	}
}

func TestRetryAfterIsReadAsSecondsOrDate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 12, 0, 0, 500_000_000, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for name, c := range map[string]struct {
		header, date string
		want         time.Duration
	}{
		"none":                             {"", "", 0},
		"seconds":                          {"3", "", 3 * time.Second},
		"seconds with blanks":              {" 3 ", "", 3 * time.Second},
		"a fraction is rounded up":         {"1.2", "", 2 * time.Second},
		"zero":                             {"0", "", 0},
		"negative":                         {"-5", "", 0},
		"too large":                        {"999999999999999999999", "", maxRetryAfter},
		"infinite":                         {"Inf", "", maxRetryAfter},
		"not a number":                     {"NaN", "", 0},
		"not a date":                       {"soon", "", 0},
		"date, rounded up":                 {date(90 * time.Second), "", 90 * time.Second},
		"date in the past":                 {date(-time.Hour), "", 0},
		"date relative to the Date header": {date(time.Hour + time.Minute), date(time.Hour), time.Minute},
		"date too far":                     {date(365 * 24 * time.Hour), "", maxRetryAfter},
	} {
		h := http.Header{}
		h.Set("Retry-After", c.header)
		h.Set("Date", c.date)
		require.Equal(t, c.want, retryAfter(h, now), name)
	}
}

func TestScrubberRemovesOnlySecrets(t *testing.T) {
	t.Parallel()
	s := scrubber{"tok en+1", "https://u:longpassword@h.test/p?sig=abcdef123&v=1"}
	for in, want := range map[string]string{
		"plain text":                     "plain text",
		"get https://h.test/p?x=1#y, no": "get https://h.test/p no",
		"see https://docs.audd.io":       "see https://docs.audd.io",
		"as tok en+1 or tok+en%2B1":      "as [redacted] or [redacted]",
		"signed with abcdef123, v=1":     "signed with [redacted], v=1",
		"dial http://a:b@proxy:3128/x":   "dial http://proxy:3128/x",
		"longpassword":                   "[redacted]",
		"two\nlines\x00 ":                "two lines",
		"bad\xff":                        "bad\uFFFD",
		"HTTPS://U:pw@H.test?q":          "HTTPS://H.test",
		"sig=abcdef123&v=1 as sent":      "[redacted] as sent",
	} {
		require.Equal(t, want, s.text(in, 1000), in)
	}
	require.Equal(t, "ää", scrubber{"", ""}.text("äää", 5), "cut at a rune boundary")
	require.Equal(t, "x", scrubber{"", "http://%zz?sig=abcdef"}.text("x", 10))
	require.Equal(t, redacted, scrubber{"", "%zz?sig=abcdef"}.text("sig=abcdef", 30))
}

// FuzzInterpret checks that every response has a phase and that no text contains a secret.
func FuzzInterpret(f *testing.F) {
	for _, body := range []string{
		`{"status":"success","result":null}`,
		`{"status":"success","result":{"title":1,"audio_id":"7","artist":["x"]}}`,
		`{"status":"success","result":[{"songs":[{"score":"9","start_offset":1,"end_offset":"2"}],"offset":"00:12"},5]}`,
		`{"status":"error","error":{"error_code":"19","error_message":"tok-secret\u0000"},"result":{"artist":"Sorry"}}`,
		`{"status":"error","error":{"error_code":51},"result":null}`,
		`<html>`, ``, `[`, `"`, "\xef\xbb\xbf{}", "{\"status\":\"success\",\"result\":\"\xff\"}",
	} {
		for _, status := range []int{200, 403, 503} {
			f.Add(status, body, "3")
		}
	}
	f.Fuzz(func(t *testing.T, status int, body, retry string) {
		x := &exchange{call: call{op: "recognize"}, scrub: scrubber{"tok-secret", "https://h.test/?sig=signature1"}, start: time.Now()}
		resp := &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {retry}, "X-Request-Id": {body}}}
		a, err := x.interpret(resp, []byte(body), nil)
		if err != nil {
			checkError(t, err)
			return
		}
		if status < 200 || status > 299 {
			t.Fatalf("success with HTTP status %d", status)
		}
		r, e := decodeRecognition(a), decodeEnterprise(a)
		for _, raw := range []json.RawMessage{r.Raw, e.Raw} {
			if !json.Valid(raw) || !utf8.Valid(raw) {
				t.Fatalf("raw result %q", raw)
			}
		}
		for _, v := range []any{r, e} {
			if _, err := json.Marshal(v); err != nil {
				t.Fatalf("marshal %T: %v", v, err)
			}
		}
		for _, c := range e.Chunks {
			if c.Offset < 0 || c.Offset > maxOffset {
				t.Fatalf("chunk at %s", c.Offset)
			}
		}
	})
}

func checkError(t *testing.T, err error) {
	t.Helper()
	e, ok := err.(*Error) //nolint:errorlint // interpret must return this exact type
	if !ok {
		t.Fatalf("%T", err)
	}
	text := err.Error() + e.RequestID + e.Message
	if !utf8.ValidString(text) || strings.Contains(text, "tok-secret") || strings.Contains(text, "signature1") {
		t.Fatalf("text %q", text)
	}
	if (e.Kind == KindCode) != (e.Code != 0) || e.Phase == "" || e.Phase == PhaseUnsent || e.RetryAfter < 0 || e.RetryAfter > maxRetryAfter {
		t.Fatalf("error %#v", e)
	}
}

func TestScalarEqualsEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`"plain"`, `"a\u0041"`, "\"a\xffb\"", "\"\xed\xa0\x80\"", "\"\xc3\""} {
		var want string
		require.NoError(t, json.Unmarshal([]byte(raw), &want))
		got, ok := scalar(json.RawMessage(raw))
		require.True(t, ok)
		require.Equal(t, want, got)
	}
}
