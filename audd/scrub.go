package audd

import (
	"cmp"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	redacted    = "[redacted]"
	maxMessage  = 300 // bytes of AudD's message that are kept
	maxErrText  = 600 // bytes of a wrapped error's text
	minSecret   = 6   // shorter query values are ordinary words and numbers
	maxHeaderID = 128 // bytes of a request id
)

// anyURL finds URLs in foreign text; their user, query and fragment are dropped.
var anyURL = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>\x60]+`)

// scrubber takes what is secret in one call out of texts: the token, and user,
// query and fragment of the audio's URL.
type scrubber struct{ token, audioURL string }

// secrets are the texts to be taken out, longest first. Most calls have nothing
// to take them out of.
func (s scrubber) secrets() []string {
	secrets := append(urlSecrets(s.audioURL), s.token, url.QueryEscape(s.token))
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	secrets = slices.Compact(secrets)
	return slices.DeleteFunc(secrets, func(s string) bool { return s == "" })
}

// urlSecrets are the parts of a URL that may show up on their own in a text.
func urlSecrets(raw string) []string {
	u, err := url.Parse(raw)
	if err != nil {
		_, query, _ := strings.Cut(raw, "?")
		return []string{raw, query}
	}
	out := []string{u.RawQuery, u.EscapedFragment(), u.Fragment}
	if u.User != nil {
		password, _ := u.User.Password()
		out = append(out, u.User.String(), u.User.Username(), password, url.QueryEscape(password))
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		_, value, _ := strings.Cut(pair, "=")
		plain, err := url.QueryUnescape(value)
		if err != nil {
			plain = value
		}
		out = append(out, pair, value, plain, url.QueryEscape(plain))
	}
	return slices.DeleteFunc(out, func(s string) bool { return len(s) < minSecret })
}

// text is in without secrets, as one line of valid UTF-8 of at most limit bytes.
func (s scrubber) text(in string, limit int) string {
	if in == "" {
		return ""
	}
	out := strings.ToValidUTF8(in, "\uFFFD")
	out = anyURL.ReplaceAllStringFunc(out, bareURL)
	for _, secret := range s.secrets() {
		out = strings.ReplaceAll(out, secret, redacted)
	}
	out = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, out)
	return truncate(strings.TrimSpace(out), limit)
}

// bareURL drops user, query and fragment of a URL found in a text.
func bareURL(raw string) string {
	scheme, rest, _ := strings.Cut(raw, "://")
	rest, _, _ = strings.Cut(rest, "?")
	rest, _, _ = strings.Cut(rest, "#")
	authority, path, slash := strings.Cut(rest, "/")
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		authority = authority[at+1:]
	}
	if slash {
		path = "/" + path
	}
	return scheme + "://" + authority + path
}

// truncate cuts s to at most limit bytes at a rune boundary.
func truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// scrubbed is an error with a clean text. What it wraps is reachable by
// errors.Is and errors.As, for control flow; print this, not that.
type scrubbed struct {
	text string
	err  error
}

func (e *scrubbed) Error() string { return e.text }
func (e *scrubbed) Unwrap() error { return e.err }

// own wraps an error of the caller's (hook, audio), which must stay reachable.
func (s scrubber) own(err error) error {
	return &scrubbed{text: s.text(err.Error(), maxErrText), err: err}
}

// foreign wraps an error of the network stack. If its text held a secret, only
// a clean copy survives; contexts' errors stay recognisable.
func (s scrubber) foreign(err error, keep error) error {
	raw := err.Error()
	text := s.text(raw, maxErrText)
	if text == raw {
		return &scrubbed{text: text, err: errors.Join(err, keep)}
	}
	return &scrubbed{text: text, err: keep}
}

// requestID is a header value fit for logs.
func (s scrubber) requestID(raw string) string {
	return s.text(raw, maxHeaderID)
}
