package audd

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Config configures a Client. Start from DefaultConfig.
type Config struct {
	// Token returns the API token. Every call calls it once, concurrently, so the token can change at any time. White
	// space around the token is removed. Required.
	Token func() string
	// BaseURL is the URL of recognize and the parent of upload/ and getStreams/. Default https://api.audd.io/.
	BaseURL string
	// EnterpriseURL is the URL of the enterprise endpoint. Default https://enterprise.audd.io/.
	EnterpriseURL string
	Timeouts      Timeouts
	// Transport sends the requests. An *http.Transport is cloned and restricted to HTTP/1.1; any other RoundTripper is
	// used unchanged. nil = a transport for many concurrent calls, with the proxy of the environment.
	Transport http.RoundTripper
	UserAgent string // default "reprise"
}

// Timeouts bound one whole call each: connecting, sending and reading the response. AudD may finish and bill a call
// that timed out here. Each must be more than 0.
type Timeouts struct {
	Recognize  time.Duration // default 60 s; a usual call takes less than 2 s
	Enterprise time.Duration // default 1 h; grows with the audio
	Upload     time.Duration // default 10 min, because AudD's SDKs use 60 s, which a large track on a slow link exceeds
	Check      time.Duration // default 15 s; of CheckToken
}

// DefaultConfig returns the default configuration, which lacks only the token.
func DefaultConfig() Config {
	return Config{
		BaseURL:       "https://api.audd.io/",
		EnterpriseURL: "https://enterprise.audd.io/",
		Timeouts:      Timeouts{Recognize: time.Minute, Enterprise: time.Hour, Upload: 10 * time.Minute, Check: 15 * time.Second},
		UserAgent:     "reprise",
	}
}

// Validate reports every invalid field by name. It quotes no URL, because a URL may contain a password.
func (c Config) Validate() error {
	var errs []error
	if c.Token == nil {
		errs = append(errs, errors.New("field Token: must be a function that returns the API token"))
	}
	errs = append(errs, validateURL("BaseURL", c.BaseURL), validateURL("EnterpriseURL", c.EnterpriseURL))
	for _, t := range []struct {
		name  string
		value time.Duration
	}{{"Recognize", c.Timeouts.Recognize}, {"Enterprise", c.Timeouts.Enterprise}, {"Upload", c.Timeouts.Upload}, {"Check", c.Timeouts.Check}} {
		if t.value <= 0 {
			errs = append(errs, fmt.Errorf("field Timeouts.%s %s: must be more than 0", t.name, t.value))
		}
	}
	if strings.ContainsFunc(c.UserAgent, func(r rune) bool { return r < ' ' || r > '~' }) {
		errs = append(errs, errors.New("field UserAgent: must be printable ASCII"))
	}
	return errors.Join(errs...)
}

func validateURL(field, raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return fmt.Errorf("field %s: must be an http or https URL", field)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return fmt.Errorf("field %s: must not contain a user, password, query or fragment", field)
	}
	return nil
}
