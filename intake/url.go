package intake

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// isURL reports whether an argument is an http or https URL.
func isURL(arg string) bool {
	scheme, _, ok := strings.Cut(strings.TrimSpace(arg), "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// otherURL reports whether an argument is a URL with another scheme.
func otherURL(arg string) bool {
	scheme, _, ok := strings.Cut(strings.TrimSpace(arg), "://")
	rest := strings.TrimLeft(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+-.")
	return ok && scheme != "" && rest == "" && !isURL(arg)
}

// expiry returns when a signed URL stops working, in Unix seconds; 0 = unknown. It reads the parameters of AWS and
// Google V4 (date and lifetime), AWS V2 and CloudFront (Expires), Azure SAS (se) and plain exp. The earliest time
// wins.
func expiry(raw string) int64 {
	u, err := url.Parse(raw)
	if err != nil {
		return 0
	}
	q := map[string]string{}
	for name, values := range u.Query() {
		q[strings.ToLower(name)] = values[0]
	}
	var earliest int64
	take := func(at int64, ok bool) {
		if ok && at > 0 && (earliest == 0 || at < earliest) {
			earliest = at
		}
	}
	take(dateAndLifetime(q["x-amz-date"], q["x-amz-expires"]))
	take(dateAndLifetime(q["x-goog-date"], q["x-goog-expires"]))
	take(unixSeconds(q["expires"]))
	take(unixSeconds(q["exp"]))
	if q["sig"] != "" {
		take(isoTime(q["se"]))
	}
	return earliest
}

// dateAndLifetime adds a lifetime in seconds to a date such as 20260131T120000Z.
func dateAndLifetime(date, lifetime string) (int64, bool) {
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

// unixSeconds accepts times from 2001 to 2100: other numbers are lifetimes, versions or milliseconds.
func unixSeconds(text string) (int64, bool) {
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
