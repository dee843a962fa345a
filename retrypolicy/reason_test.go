package retrypolicy

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"reprise/audd"
	"reprise/tasks"
)

func TestReasonNamesCodeStatusAndMessage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"code and message":         {code(300, "Recognition failed: too short"), "invalid_audio: AudD code 300: Recognition failed: too short"},
		"code beside a status":     {&audd.Error{Kind: audd.KindCode, Code: 100, HTTPStatus: 502}, "unavailable: AudD code 100 with HTTP 502"},
		"status alone":             {status(503, false), "unavailable: HTTP 503"},
		"transport":                {network(audd.PhaseUnsent, errors.New("dial tcp 192.0.2.1:443: refused")), "unavailable_unsent: dial tcp 192.0.2.1:443: refused"},
		"sent without answer":      {network(audd.PhaseSent, errors.New("EOF")), "ambiguous: sent, but no complete response: EOF"},
		"several lines become one": {code(300, "one\ntwo\r\n\tthree\u2028four"), "invalid_audio: AudD code 300: one two three four"},
		"invalid UTF-8":            {code(300, "caf\xe9"), "invalid_audio: AudD code 300: caf?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, Classify(CallResult{Path: tasks.Recognize, Err: tc.err}).Reason)
		})
	}
}

func TestReasonHidesQueriesAndCredentials(t *testing.T) {
	t.Parallel()
	const secret = "S3CR3T"
	for name, text := range map[string]string{
		"signed URL":            "could not get https://b.example/a.mp3?X-Amz-Signature=" + secret + "&x=1",
		"user in a URL":         "proxy http://u:" + secret + "@proxy.example:3128 refused",
		"Redis URL":             "redis://:" + secret + "@r.example:6379/0",
		"fragment":              "see https://h.example/#access_token=" + secret,
		"parameter alone":       "bad request: api_token=" + secret,
		"signature alone":       "X-Amz-Signature=" + secret + "&next=1",
		"quoted by the network": `Get "https://b.example/a?sig=` + secret + `": EOF`,
		"unreadable URL":        "http://[::1?token=" + secret,
		"upper case scheme":     "HTTPS://b.example/a?sig=" + secret,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, err := range []error{code(600, text), network(audd.PhaseSent, errors.New(text)), errors.New(text),
				hook(errors.New(text)), local(audd.PhaseUnsent, &url.Error{Op: "Get", URL: "https://h.example/?sig=" + secret, Err: errors.New(text)})} {
				c := Classify(CallResult{Path: tasks.Recognize, Err: err})
				assert.NotContains(t, c.Reason, secret)
				d := Default().Decide(tasks.Recognize, c, tasks.AttemptRecord{Counted: 99, SameOutcome: 99, LastOutcome: c.Outcome}, 0)
				assert.NotContains(t, d.Reason, secret)
			}
		})
	}
}

func TestLongReasonIsCutAtARuneAndKeepsTheBudget(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 400)
	c := Classify(CallResult{Path: tasks.Recognize, Err: network(audd.PhaseSent, errors.New(long))})
	assert.True(t, utf8.ValidString(c.Reason))
	assert.LessOrEqual(t, len(c.Reason), maxReason)
	d := Default().Decide(tasks.Recognize, c, tasks.AttemptRecord{PossiblyBilled: 2}, 0)
	assert.LessOrEqual(t, len(d.Reason), maxReason)
	assert.True(t, utf8.ValidString(d.Reason))
	assert.True(t, strings.HasSuffix(d.Reason, "; max_possibly_billed used up (3 of 3)"), d.Reason)
}

func TestDecidePutsTheOutcomeInFrontOfAReason(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                        "refused",
		"refused":                 "refused",
		"refused: gate rate":      "refused: gate rate",
		"gate rate":               "refused: gate rate",
		"refusedly":               "refused: refusedly",
		"line\nbreak":             "refused: line break",
		"https://h/?sig=abc gone": "refused: https://h/ gone",
	} {
		d := Default().Decide(tasks.Recognize, Classified{Outcome: tasks.Refused, Reason: given}, tasks.AttemptRecord{}, 0)
		assert.Equal(t, want, d.Reason, "%q", given)
	}
}
