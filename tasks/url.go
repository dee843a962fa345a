package tasks

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// signing is one scheme for signing URLs. If a URL has all parameters of needs, the parameters of needs and drops belong
// to the signature, not to the content.
type signing struct {
	scheme string
	needs  []string
	drops  []string
}

// signings lists the known schemes, with parameter names in lower case. A name such as "token" or "policy" may also
// identify content, so a scheme applies only when it is complete. Two recordings that are taken for one give a wrong
// result; a signature that is taken for content costs one more call. A change of a row changes keys.
var signings = []signing{
	{"AWS SigV4, S3-compatible", []string{"x-amz-signature"}, []string{
		"x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-expires", "x-amz-signedheaders",
		"x-amz-security-token", "x-amz-content-sha256"}},
	{"AWS SigV2", []string{"awsaccesskeyid", "signature", "expires"}, []string{"x-amz-security-token"}},
	{"CloudFront", []string{"key-pair-id", "signature"}, []string{"expires", "policy"}},
	{"Google SigV4", []string{"x-goog-signature"}, []string{
		"x-goog-algorithm", "x-goog-credential", "x-goog-date", "x-goog-expires", "x-goog-signedheaders"}},
	{"Google SigV2", []string{"googleaccessid", "signature", "expires"}, nil},
	{"Google Cloud CDN", []string{"keyname", "signature", "expires"}, nil},
	{"Azure SAS", []string{"sig", "sv"}, []string{
		"se", "st", "sr", "sp", "spr", "sip", "si", "ss", "srt", "sks", "skv", "ske", "skt", "skoid", "sktid",
		"saoid", "suoid", "scid", "sdd", "ses"}},
	{"Aliyun OSS V1", []string{"ossaccesskeyid", "signature", "expires"}, []string{"security-token"}},
	{"Aliyun OSS V4", []string{"x-oss-signature"}, []string{
		"x-oss-signature-version", "x-oss-credential", "x-oss-date", "x-oss-expires", "x-oss-additional-headers",
		"x-oss-security-token"}},
	{"Aliyun CDN", []string{"auth_key"}, nil},
	{"Tencent COS", []string{"q-signature"}, []string{
		"q-sign-algorithm", "q-ak", "q-sign-time", "q-key-time", "q-header-list", "q-url-param-list", "x-cos-security-token"}},
	{"Backblaze B2", []string{"authorization"}, nil},
	{"Qiniu", []string{"e", "token"}, nil},
	{"Discord CDN", []string{"ex", "is", "hm"}, nil},
	{"Akamai hdnts", []string{"hdnts"}, nil},
	{"Akamai hdnea", []string{"hdnea"}, nil},
	{"Akamai hdntl", []string{"hdntl"}, nil},
	{"Akamai __token__", []string{"__token__"}, nil},
	{"Akamai __gda__", []string{"__gda__"}, nil},
	{"bunny.net", []string{"token", "expires"}, []string{"token_path"}},
	{"nginx secure_link", []string{"md5", "expires"}, nil},
	{"expires and signature", []string{"expires", "signature"}, nil},
	{"expires and sig", []string{"expires", "sig"}, nil},
	{"expires and hmac", []string{"expires", "hmac"}, nil},
	{"exp and sig", []string{"exp", "sig"}, nil},
	{"exp and hmac", []string{"exp", "hmac"}, nil},
}

// CanonicalURL returns the URL that identifies the content: lower-case scheme and host, no default port, no password,
// no unnecessary percent escapes, parameters sorted by name (equal names keep their order), no known signature. User
// name and fragment stay, because they may identify the content. Text that does not parse is returned trimmed.
//
// The result is for hashing and may contain a secret: never display it.
func CanonicalURL(raw string) string {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Host == "" {
		return strings.TrimSpace(raw)
	}
	scheme := strings.ToLower(u.Scheme)
	var b strings.Builder
	b.WriteString(scheme + "://")
	if name := u.User.Username(); name != "" {
		b.WriteString(url.PathEscape(name) + "@")
	}
	b.WriteString(canonicalHost(scheme, u))
	if path := plainEscapes(u.EscapedPath()); path != "" {
		b.WriteString(path)
	} else {
		b.WriteByte('/')
	}
	if query := canonicalQuery(escapeSpaces(u.RawQuery)); query != "" {
		b.WriteString("?" + query)
	}
	if fragment := plainEscapes(u.EscapedFragment()); fragment != "" {
		b.WriteString("#" + fragment)
	}
	return b.String()
}

func canonicalHost(scheme string, u *url.URL) string {
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" || (scheme == "http" && port == "80") || (scheme == "https" && port == "443") {
		return host
	}
	return host + ":" + port
}

// escapeSpaces percent-encodes white space. Sorting may otherwise move it to the end of the URL, where the next reader
// trims it.
func escapeSpaces(query string) string {
	return spaces.ReplaceAllStringFunc(query, url.PathEscape)
}

var spaces = regexp.MustCompile(`[\s\v\x{85}\x{A0}\pZ]+`)

// canonicalQuery returns the pairs of a query sorted and without signatures. It works on the raw text, because decoding
// drops pairs that do not decode and would make different URLs equal.
func canonicalQuery(raw string) string {
	type pair struct{ name, text string }
	var pairs []pair
	have := map[string]bool{}
	for text := range strings.SplitSeq(raw, "&") {
		if text == "" {
			continue
		}
		text = plainEscapes(text)
		name, _, _ := strings.Cut(text, "=")
		pairs = append(pairs, pair{name, text})
		have[strings.ToLower(name)] = true
	}
	signature := signatureOf(have)
	pairs = slices.DeleteFunc(pairs, func(p pair) bool { return signature[strings.ToLower(p.name)] })
	slices.SortStableFunc(pairs, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	texts := make([]string, len(pairs))
	for i, p := range pairs {
		texts[i] = p.text
	}
	return strings.Join(texts, "&")
}

// signatureOf returns the parameters in have that belong to complete signatures.
func signatureOf(have map[string]bool) map[string]bool {
	out := map[string]bool{}
	for _, s := range signings {
		if slices.ContainsFunc(s.needs, func(name string) bool { return !have[name] }) {
			continue
		}
		for _, name := range slices.Concat(s.needs, s.drops) {
			out[name] = true
		}
	}
	return out
}

// plainEscapes decodes percent escapes of unreserved characters (RFC 3986, section 6.2.2) and writes the others in
// upper case. It returns text with an invalid escape unchanged, because decoding could create a new escape.
func plainEscapes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		c, err := strconv.ParseUint(s[i+1:min(i+3, len(s))], 16, 8)
		if err != nil || i+2 >= len(s) {
			return s
		}
		if isUnreserved(byte(c)) {
			b.WriteByte(byte(c))
		} else {
			b.WriteString(strings.ToUpper(s[i : i+3]))
		}
		i += 2
	}
	return b.String()
}

func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// RedactURL returns the URL without user, query and fragment, for logs, errors, metrics and pages. It returns
// "(unreadable URL)" for text that does not parse.
func RedactURL(raw string) string {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Host == "" {
		return "(unreadable URL)"
	}
	u.User, u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = nil, "", "", "", false
	return u.String()
}
