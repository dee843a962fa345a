package audd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/audd"
)

const signed = "https://ann:pa55word@bucket.example.test/a%20b.mp3?X-Amz-Signature=deadbeef%2Fcafe0123&X-Amz-Credential=AKIAEXAMPLE#frag-ment"

// secrets must not occur in any text, escaped or unescaped.
var secrets = []string{token, "pa55word", "deadbeef", "cafe0123", "AKIAEXAMPLE", "X-Amz-Sig", "frag-ment", "pr0xypass", "deadbeef/cafe0123"}

// everything contains all secrets.
var everything = token + " " + signed + " " + url.QueryEscape(token) + " ?X-Amz-Signature=deadbeef%2Fcafe0123 deadbeef/cafe0123 ann:pa55word AKIAEXAMPLE #frag-ment"

func requireClean(t *testing.T, err error) {
	t.Helper()
	e := failed(t, err)
	marshalled, jsonErr := json.Marshal(e)
	require.NoError(t, jsonErr)
	for _, text := range []string{
		err.Error(), fmt.Sprintf("%v|%+v|%#v|%q|%+v|%#v", e, e, e, e, *e, *e), e.Message, e.RequestID, string(marshalled),
		fmt.Sprintf("%+v", fmt.Errorf("call: %w", err)), fmt.Sprintf("%v|%+v|%#v", e.Err, e.Err, e.Err),
	} {
		for _, secret := range secrets {
			require.NotContains(t, text, secret)
		}
	}
}

// For every kind of failure, the server puts secrets into all texts.
func TestResponseErrorsContainNoSecret(t *testing.T) {
	t.Parallel()
	quoted, err := json.Marshal(everything)
	require.NoError(t, err)
	echo := `"request_params":{"api_token":` + string(quoted) + `,"url":` + string(quoted) + `},"requested_params":` + string(quoted)
	withHeaders := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Request-Id", "id "+everything)
			w.Header().Set("Location", "https://x.test/?"+token)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	coded := `{"status":"error","error":{"error_code":600,"error_message":` + string(quoted) + `},` + echo + `}`
	for name, h := range map[string]http.HandlerFunc{
		"code":          withHeaders(200, coded),
		"code and 503":  withHeaders(503, coded),
		"error is text": withHeaders(400, `{"status":"error","error":`+string(quoted)+`}`),
		"HTML":          withHeaders(502, "<html>"+everything),
		"not JSON":      withHeaders(200, everything),
		"redirect":      withHeaders(307, ""),
		"no status":     withHeaders(200, `{`+echo+`}`),
		"timeout":       func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, h)
			timeout := time.Minute
			if name == "timeout" {
				timeout = 300 * time.Millisecond
			}
			c := newClient(t, s.URL, withTimeout(timeout))
			for _, in := range []audd.Audio{{URL: signed}, audio([]byte("abc"))} {
				_, err := c.Recognize(t.Context(), audd.RecognizeRequest{Audio: in})
				if in.URL != "" {
					requireClean(t, err)
				}
				require.NotContains(t, err.Error(), token)
			}
		})
	}
}

// The errors of hook, audio, dialer and proxy contain secrets.
func TestErrorsOfHookAudioDialerAndProxyContainNoSecret(t *testing.T) {
	t.Parallel()
	leak := errors.New("cannot do it: " + everything)
	t.Run("hook", func(t *testing.T) {
		t.Parallel()
		s := serve(t, answer(200, noMatch))
		_, err := newClient(t, s.URL).Recognize(t.Context(), audd.RecognizeRequest{
			Audio: audd.Audio{URL: signed}, BeforeBody: func(context.Context) error { return leak },
		})
		require.ErrorIs(t, err, leak)
		requireClean(t, err)
	})
	t.Run("audio", func(t *testing.T) {
		t.Parallel()
		s := serve(t, answer(200, noMatch))
		spool := &url.Error{Op: "Get", URL: "https://bucket.test/o?X-Amz-Signature=deadbeef", Err: errors.New("gone")}
		_, err := newClient(t, s.URL).Recognize(t.Context(), audd.RecognizeRequest{
			Audio: audd.Audio{Open: func() (io.ReadCloser, int64, error) { return nil, 0, spool }},
		})
		require.ErrorIs(t, err, spool)
		requireClean(t, err)
	})
	for name, transport := range map[string]http.RoundTripper{
		"other transport": roundTrip(func(*http.Request) (*http.Response, error) { return nil, leak }),
		"dialer": &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, leak
		}},
		"proxy setting": &http.Transport{Proxy: func(*http.Request) (*url.URL, error) {
			return nil, errors.New(`invalid proxy address "http://ann:pr0xypass@pro xy:3128"`)
		}},
		"proxy refused": &http.Transport{Proxy: proxyTo("http://ann:pr0xypass@127.0.0.1:1")},
		"proxy scheme":  &http.Transport{Proxy: proxyTo("gopher://ann:pr0xypass@127.0.0.1:1")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newClient(t, "https://api.audd.test", withTransport(transport)).Recognize(t.Context(),
				audd.RecognizeRequest{Audio: audd.Audio{URL: signed}})
			require.Equal(t, audd.PhaseUnsent, failed(t, err).Phase)
			requireClean(t, err)
		})
	}
}

func TestWarningsContainNoSecret(t *testing.T) {
	t.Parallel()
	out, err := recognize(t, answer(200, `{"status":"error","error":{"error_code":51,"error_message":"`+token+` is old"},"result":null}`))
	require.NoError(t, err)
	require.Equal(t, "code 51: [redacted] is old", out.Warning)
}

func TestConfigErrorsNameTheFieldWithoutQuotingURLs(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*audd.Config){
		"Token":               func(c *audd.Config) { c.Token = nil },
		"BaseURL":             func(c *audd.Config) { c.BaseURL = "https://ann:pr0xypass@api.audd.test" },
		"EnterpriseURL":       func(c *audd.Config) { c.EnterpriseURL = "https://x.test/?api_token=" + token },
		"BaseURL: must":       func(c *audd.Config) { c.BaseURL = "http://%zz" + token },
		"Timeouts.Recognize":  func(c *audd.Config) { c.Timeouts.Recognize = 0 },
		"Timeouts.Enterprise": func(c *audd.Config) { c.Timeouts.Enterprise = -1 },
		"Timeouts.Upload":     func(c *audd.Config) { c.Timeouts.Upload = 0 },
		"Timeouts.Check":      func(c *audd.Config) { c.Timeouts.Check = 0 },
		"UserAgent":           func(c *audd.Config) { c.UserAgent = "a\nb" },
	} {
		cfg := audd.DefaultConfig()
		cfg.Token = func() string { return token }
		require.NoError(t, cfg.Validate())
		change(&cfg)
		_, err := audd.New(cfg)
		require.ErrorContains(t, err, name)
		for _, secret := range secrets {
			require.NotContains(t, err.Error(), secret)
		}
	}
	_, err := audd.New(audd.Config{})
	for _, name := range []string{"Token", "BaseURL", "EnterpriseURL", "Timeouts.Recognize", "Timeouts.Check"} {
		require.ErrorContains(t, err, name, "every invalid field at once")
	}
}
