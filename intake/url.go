package intake

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"reprise/tasks"
)

// isURL reports whether an argument is meant as a URL, not as a file.
func isURL(arg string) bool {
	scheme, _, ok := strings.Cut(arg, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// otherURL reports whether an argument has the form of a URL that AudD would
// not fetch.
func otherURL(arg string) bool {
	scheme, _, ok := strings.Cut(arg, "://")
	word := strings.TrimLeft(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+-.")
	return ok && scheme != "" && word == "" && !isURL(arg)
}

const onlyHTTP = "is a URL of a kind that cannot be fetched: only http and https"

// shownURL is the URL without what may be secret.
func shownURL(raw string) string { return tasks.RedactURL(raw) }

// expiry finds when a signed URL stops working, in Unix seconds; 0 = unknown.
// It knows AWS and Google V4 (date + lifetime), V2 and CloudFront (Expires),
// Azure SAS (se) and plain exp. The earliest wins.
func expiry(raw string) int64 {
	u, err := url.Parse(raw)
	if err != nil {
		return 0
	}
	q := map[string]string{}
	for name, values := range u.Query() {
		q[strings.ToLower(name)] = values[0]
	}
	var at int64
	take := func(t int64, ok bool) {
		if ok && t > 0 && (at == 0 || t < at) {
			at = t
		}
	}
	for _, vendor := range []string{"x-amz-", "x-goog-"} {
		take(dated(q[vendor+"date"], q[vendor+"expires"]))
	}
	take(unix(q["expires"]))
	take(unix(q["exp"]))
	if se, signed := q["se"], q["sig"] != ""; signed {
		take(isoTime(se))
	}
	return at
}

// dated adds a lifetime in seconds to a date like 20260131T120000Z.
func dated(date, lifetime string) (int64, bool) {
	from, err := time.Parse("20060102T150405Z", date)
	if err != nil {
		return 0, false
	}
	seconds, err := strconv.ParseInt(lifetime, 10, 64)
	if err != nil || seconds < 0 || seconds > 1<<32 {
		return 0, false
	}
	return from.Unix() + seconds, true
}

// unix reads seconds since 1970. Numbers that are no time of our days
// (lifetimes, versions, milliseconds) are not an expiry.
func unix(text string) (int64, bool) {
	const y2001, y2100 = 1_000_000_000, 4_102_444_800
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= y2001 && n < y2100
}

func isoTime(text string) (int64, bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.Unix(), true
		}
	}
	return 0, false
}
