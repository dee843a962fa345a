package audd

import (
	"fmt"
	"time"
)

// Timeouts bound one whole call each: connecting, sending and reading the
// answer. They are context deadlines, so they apply to any http.Client. AudD
// may finish and bill a call that timed out here. All must be more than 0.
type Timeouts struct {
	Recognize  time.Duration // default 60 s; the usual answer takes less than 2 s
	Enterprise time.Duration // default 1 h; grows with the audio
	Upload     time.Duration // default 10 min; mostly sending
	Check      time.Duration // default 15 s; CheckToken
}

// DefaultTimeouts returns the default timeouts. AudD's SDKs use 60 s and 1 h, and
// 60 s for uploads, which is too short for large tracks on slow links.
func DefaultTimeouts() Timeouts {
	return Timeouts{Recognize: time.Minute, Enterprise: time.Hour, Upload: 10 * time.Minute, Check: 15 * time.Second}
}

func (t Timeouts) validate() (errs []error) {
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"Recognize", t.Recognize}, {"Enterprise", t.Enterprise}, {"Upload", t.Upload}, {"Check", t.Check}} {
		if f.value <= 0 {
			errs = append(errs, fmt.Errorf("field Timeouts.%s %s: must be more than 0", f.name, f.value))
		}
	}
	return errs
}

// timeout returns the shorter timeout of the operation and the injected client.
func (c *Client) timeout(d time.Duration) time.Duration {
	if c.cfg.HTTPClient != nil && c.cfg.HTTPClient.Timeout > 0 {
		return min(d, c.cfg.HTTPClient.Timeout)
	}
	return d
}
