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
	maxMessage  = 300 // bytes of AudD's message
	maxErrText  = 600 // bytes of a wrapped error
	maxHeaderID = 128 // bytes of a request id
	minSecret   = 6   // bytes; shorter parts of a URL are not treated as secrets
)

// anyURL matches a URL within a text.
var anyURL = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>\x60]+`)

// scrubber removes one call's secrets from texts. The secrets are the token and the user, query and fragment of the
// audio's URL.
type scrubber struct{ token, audioURL string }

// secrets returns the texts to remove, longest first. It runs only when there is a text to scrub, because most calls
// have none.
func (s scrubber) secrets() []string {
	secrets := append(urlSecrets(s.audioURL), s.token, url.QueryEscape(s.token))
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	secrets = slices.Compact(secrets)
	return slices.DeleteFunc(secrets, func(s string) bool { return s == "" })
}

// urlSecrets returns the secret parts of a URL, which a text may contain without the rest of the URL.
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

// text returns in without secrets, as one line of valid UTF-8 with at most limit bytes.
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

// bareURL returns the URL without user, query and fragment.
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

// truncate shortens s to at most limit bytes at a rune boundary.
func truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// scrubbed is an error whose text contains no secrets. Unwrap returns the original error, with its original text, for
// errors.Is and errors.As.
type scrubbed struct {
	text string
	err  error
}

func (e *scrubbed) Error() string { return e.text }
func (e *scrubbed) Unwrap() error { return e.err }

// own scrubs an error of the caller's code (hook, audio). errors.Is still finds the original.
func (s scrubber) own(err error) error {
	return &scrubbed{text: s.text(err.Error(), maxErrText), err: err}
}

// foreign scrubs a network error. If the error's text contains a secret, only its scrubbed text is kept. keep is the
// context's error and is always wrapped.
func (s scrubber) foreign(err error, keep error) error {
	raw := err.Error()
	text := s.text(raw, maxErrText)
	if text == raw {
		return &scrubbed{text: text, err: errors.Join(err, keep)}
	}
	return &scrubbed{text: text, err: keep}
}
