package audd

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter is the longest wait that retryAfter returns.
const maxRetryAfter = 30 * 24 * time.Hour

// retryAfter returns the Retry-After header, rounded up to whole seconds; 0 = none. The header is a number of seconds
// or an HTTP date. A date is compared with the response's Date header if it has one, because the two clocks may
// differ.
func retryAfter(h http.Header, now time.Time) time.Duration {
	raw := strings.TrimSpace(h.Get("Retry-After"))
	if raw == "" {
		return 0
	}
	if seconds, err := strconv.ParseFloat(raw, 64); err == nil {
		if math.IsNaN(seconds) || seconds <= 0 {
			return 0
		}
		if seconds >= maxRetryAfter.Seconds() {
			return maxRetryAfter
		}
		return time.Duration(math.Ceil(seconds)) * time.Second
	}
	until, err := http.ParseTime(raw)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	wait := until.Sub(now)
	if wait <= 0 {
		return 0
	}
	wait = (wait + time.Second - 1).Truncate(time.Second)
	return min(wait, maxRetryAfter)
}
