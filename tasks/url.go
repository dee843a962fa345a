package tasks

import (
	"net/url"
	"sort"
	"strings"
)

// signatureParams are query parameters known to sign or date a URL, not to
// name its content: AWS SigV4 and V2, Google Cloud Storage, Azure SAS,
// CloudFront, Aliyun OSS, Tencent COS, generic token/expires pairs.
var signatureParams = map[string]bool{
	"x-amz-algorithm": true, "x-amz-credential": true, "x-amz-date": true, "x-amz-expires": true,
	"x-amz-signedheaders": true, "x-amz-signature": true, "x-amz-security-token": true,
	"awsaccesskeyid": true, "signature": true, "expires": true,
	"x-goog-algorithm": true, "x-goog-credential": true, "x-goog-date": true, "x-goog-expires": true,
	"x-goog-signedheaders": true, "x-goog-signature": true, "googleaccessid": true,
	"sv": true, "se": true, "st": true, "sr": true, "sp": true, "sig": true, "spr": true, "skoid": true,
	"sktid": true, "skt": true, "ske": true, "sks": true, "skv": true,
	"key-pair-id": true, "policy": true, "ossaccesskeyid": true, "security-token": true,
	"q-sign-algorithm": true, "q-ak": true, "q-sign-time": true, "q-key-time": true,
	"q-header-list": true, "q-url-param-list": true, "q-signature": true,
	"token": true, "hdnea": true, "hdnts": true, "exp": true, "hmac": true,
}

// CanonicalURL is the URL that names the content: lower-case scheme and host,
// no default port, no user, no fragment, query sorted and without known
// signature parameters. Text that does not parse is returned trimmed.
func CanonicalURL(raw string) string {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Host == "" {
		return strings.TrimSpace(raw)
	}
	u.Scheme = strings.ToLower(u.Scheme)
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != "" && !(u.Scheme == "http" && port == "80") && !(u.Scheme == "https" && port == "443") {
		host += ":" + port
	}
	u.Host, u.User, u.Fragment, u.RawFragment = host, nil, "", ""
	if u.Path == "" {
		u.Path = "/"
	}
	query := u.Query()
	for name := range query {
		if signatureParams[strings.ToLower(name)] {
			query.Del(name)
			continue
		}
		sort.Strings(query[name])
	}
	u.RawQuery = query.Encode() // sorted by name
	return u.String()
}

// RedactURL is the URL as logs, errors, metrics and pages may show it: without
// user, query and fragment. Text that does not parse becomes "(unreadable URL)".
func RedactURL(raw string) string {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Host == "" {
		return "(unreadable URL)"
	}
	u.User, u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = nil, "", "", "", false
	return u.String()
}
