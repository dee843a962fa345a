package tasks

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestCanonicalURLNormalizesSpellings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ raw, want string }{
		"scheme and host in lower case":               {"HTTPS://Host.Example/A", "https://host.example/A"},
		"default port of https":                       {"https://h.example:443/a", "https://h.example/a"},
		"default port of http":                        {"http://h.example:80/a", "http://h.example/a"},
		"another port stays":                          {"https://h.example:8443/a", "https://h.example:8443/a"},
		"the other scheme's port stays":               {"https://h.example:80/a", "https://h.example:80/a"},
		"an empty port":                               {"https://h.example:/a", "https://h.example/a"},
		"IPv6":                                        {"http://[2001:DB8::1]:80/a", "http://[2001:db8::1]/a"},
		"no path":                                     {"https://h.example", "https://h.example/"},
		"no path but a query":                         {"https://h.example?a=1", "https://h.example/?a=1"},
		"an empty query":                              {"https://h.example/a?", "https://h.example/a"},
		"empty parameters":                            {"https://h.example/a?&&b=1&", "https://h.example/a?b=1"},
		"parameters sorted by name":                   {"https://h.example/a?b=2&a=1", "https://h.example/a?a=1&b=2"},
		"equal names keep their order":                {"https://h.example/a?t=2&a=0&t=1", "https://h.example/a?a=0&t=2&t=1"},
		"unnecessary escapes are decoded":             {"https://h.example/%61%2dx?q=%7e", "https://h.example/a-x?q=~"},
		"necessary escapes in upper case":             {"https://h.example/a%2fb?q=%c3%a9", "https://h.example/a%2Fb?q=%C3%A9"},
		"surrounding space":                           {"  https://h.example/a \n", "https://h.example/a"},
		"the password is removed, the user stays":     {"https://alice:pw@h.example/a", "https://alice@h.example/a"},
		"an empty user":                               {"https://@h.example/a", "https://h.example/a"},
		"a fragment is kept":                          {"https://h.example/#/episode/12", "https://h.example/#/episode/12"},
		"an empty fragment":                           {"https://h.example/a#", "https://h.example/a"},
		"dots in a path are kept":                     {"https://h.example/a/../b", "https://h.example/a/../b"},
		"invalid escapes are kept":                    {"https://h.example/a?q=%zz&b=1", "https://h.example/a?b=1&q=%zz"},
		"semicolons do not separate parameters":       {"https://h.example/a?x=1;y=2", "https://h.example/a?x=1;y=2"},
		"a plus is kept":                              {"https://h.example/a?q=a+b", "https://h.example/a?q=a+b"},
		"not a URL":                                   {" not a url ", "not a url"},
		"a URL that does not parse":                   {"http://[::1", "http://[::1"},
		"an escaped signature parameter":              {"https://h.example/a?X%2DAmz-Signature=s&v=1", "https://h.example/a?v=1"},
		"an object version is kept":                   {"https://b.s3.example/a?versionId=7&X-Amz-Signature=s", "https://b.s3.example/a?versionId=7"},
		"a lone token is kept":                        {"https://h.example/d?token=file1", "https://h.example/d?token=file1"},
		"a lone expires is kept":                      {"https://h.example/d?expires=1", "https://h.example/d?expires=1"},
		"Azure parameters without signature are kept": {"https://h.example/d?se=2&sp=1&sr=44100", "https://h.example/d?se=2&sp=1&sr=44100"},
		"a lone sig is kept":                          {"https://h.example/d?sig=x", "https://h.example/d?sig=x"},
		"a signature beside unknown words":            {"https://h.example/d?signature=x&expires=1&token=f", "https://h.example/d"},
		"a signature of one scheme only":              {"https://h.example/d?hdnts=x&policy=p", "https://h.example/d?policy=p"},
		"an incomplete CloudFront policy":             {"https://h.example/d?policy=p&key-pair-id=k", "https://h.example/d?key-pair-id=k&policy=p"},
		"Firebase tokens are kept":                    {"https://h.example/o/a?alt=media&token=u", "https://h.example/o/a?alt=media&token=u"},
		"a percent sign at the end":                   {"https://h.example/a?q=1%", "https://h.example/a?q=1%"},
		"a percent sign with one digit":               {"https://h.example/a?q=%4", "https://h.example/a?q=%4"},
		"mixed case of a signature parameter":         {"https://h.example/a?x-AMZ-signature=s&X-amz-DATE=d", "https://h.example/a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, CanonicalURL(tc.raw))
		})
	}
}

func TestCanonicalURLDropsEveryCompleteSignature(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range signings {
		assert.False(t, seen[s.scheme], "scheme %s is listed twice", s.scheme)
		seen[s.scheme] = true
		t.Run(s.scheme, func(t *testing.T) {
			t.Parallel()
			var all, some []string
			for _, name := range append(append([]string{}, s.needs...), s.drops...) {
				assert.Equal(t, strings.ToLower(name), name, "names are in lower case")
				all = append(all, strings.ToUpper(name)+"=1")
			}
			assert.Equal(t, "https://h.example/a?part=2", CanonicalURL("https://h.example/a?part=2&"+strings.Join(all, "&")))
			for _, name := range s.drops {
				some = append(some, name+"=1")
			}
			lone := CanonicalURL("https://h.example/a?" + strings.Join(some, "&"))
			assert.Equal(t, len(some), strings.Count(lone, "=1"), "kept without the signature: %s", lone)
		})
	}
}

func TestSignedURLsOfOneObjectHaveOneCanonicalURL(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"S3":         "https://b.s3.example/clip.mp3?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AK%2F20260131%2Feu%2Fs3%2Faws4_request&X-Amz-Date=20260131T120000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Security-Token=t&X-Amz-Signature=abc",
		"S3 V2":      "https://b.s3.example/clip.mp3?AWSAccessKeyId=AK&Expires=1769860800&Signature=a%2Bb%3D",
		"Google":     "https://b.s3.example/clip.mp3?X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Credential=c&X-Goog-Date=d&X-Goog-Expires=900&X-Goog-SignedHeaders=host&X-Goog-Signature=s",
		"Azure":      "https://b.s3.example/clip.mp3?sv=2024-11-04&st=2026-01-31T12:00:00Z&se=2026-01-31T13:00:00Z&sr=b&sp=r&sig=a%2Bb",
		"CloudFront": "https://b.s3.example/clip.mp3?Policy=p&Signature=s&Key-Pair-Id=k",
		"plain":      "https://b.s3.example/clip.mp3",
	} {
		assert.Equal(t, "https://b.s3.example/clip.mp3", CanonicalURL(raw), name)
	}
}

func TestCanonicalURLIsIdempotent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		raw := "https://h.example/" + rapid.StringMatching(`[a-zA-Z0-9%/._~ é+;-]{0,20}`).Draw(t, "path") + "?" +
			rapid.StringMatching(`([a-zA-Z-]{0,4}(%[0-9a-gA-G]{2})?=?[a-z+;%0-9]{0,4}&){0,6}`).Draw(t, "query")
		once := CanonicalURL(raw)
		if twice := CanonicalURL(once); twice != once {
			t.Fatalf("%q → %q → %q", raw, once, twice)
		}
	})
}

func TestCanonicalURLKeepsDifferentURLsDifferent(t *testing.T) {
	t.Parallel()
	different := []string{
		"https://h.example/a", "https://h.example/A", "http://h.example/a", "https://h.example/a/", "https://g.example/a",
		"https://h.example/a?b", "https://h.example/a?b=", "https://h.example/a?b=1", "https://h.example/a?B=1",
		"https://h.example/a?b=1&b=2", "https://h.example/a?b=2&b=1", "https://h.example/a?b=%zz1", "https://h.example/a?b=%zz2",
		"https://h.example/a?b=1;c=2", "https://h.example/a?b=1;c=3", "https://h.example/a%2Fb", "https://h.example/a/b",
		"https://h.example/a?b=1%262", "https://h.example/a?b=1&2", "https://h.example/a#b", "https://alice@h.example/a",
		"https://h.example/a?b=%%34%31", "https://h.example/a?b=A",
		"https://h.example/a?b=1%2B2", "https://h.example/a?b=1+2", "https://h.example/a?b=1%202", "https://h.example/a?token=1", "https://h.example/a?token=2",
	}
	seen := map[string]string{}
	for _, raw := range different {
		c := CanonicalURL(raw)
		assert.Empty(t, seen[c], "%s and %s", seen[c], raw)
		seen[c] = raw
	}
}

func TestRedactURLRemovesUserQueryAndFragment(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ raw, want string }{
		"query":             {"https://h.example/a.mp3?X-Amz-Signature=s", "https://h.example/a.mp3"},
		"fragment":          {"https://h.example/a#token=s", "https://h.example/a"},
		"user":              {"https://u:p@h.example/a", "https://h.example/a"},
		"empty query":       {"https://h.example/a?", "https://h.example/a"},
		"not a URL":         {"s3cr3t", "(unreadable URL)"},
		"does not parse":    {"https://[::1?sig=s", "(unreadable URL)"},
		"no host":           {"mailto:a@b?subject=s", "(unreadable URL)"},
		"surrounding space": {" https://h.example/a?b ", "https://h.example/a"},
		"escapes are kept":  {"https://h.example/a%2Fb?c", "https://h.example/a%2Fb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, RedactURL(tc.raw))
		})
	}
}

func FuzzURLs(f *testing.F) {
	f.Add("https://h.example/a?X-Amz-Signature=s&v=1#f")
	f.Add("http://[::1%25en0]:80/%zz?%")
	f.Add("A://0?A &0")
	f.Fuzz(func(t *testing.T, raw string) {
		c := CanonicalURL(raw)
		if u, err := url.Parse(strings.TrimSpace(raw)); err == nil && u.Host != "" {
			if again := CanonicalURL(c); again != c {
				t.Errorf("%q → %q → %q", raw, c, again)
			}
		}
		if shown := RedactURL(raw); strings.ContainsAny(shown, "?#@") && !strings.Contains(raw, "@") {
			t.Errorf("%q is shown as %q", raw, shown)
		}
	})
}
