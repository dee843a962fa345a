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
	// Token returns the API token. It is called once per call, also concurrently, so the token can change at any time.
	// Surrounding white space is removed. Required.
	Token func() string
	// BaseURL is the recognize endpoint. The upload/ and getStreams/ endpoints are below it. Default
	// https://api.audd.io/.
	BaseURL string
	// EnterpriseURL is the enterprise endpoint. Default https://enterprise.audd.io/.
	EnterpriseURL string
	Timeouts      Timeouts
	// Transport sends the requests. An *http.Transport is cloned and restricted to HTTP/1.1. Any other RoundTripper is
	// used unchanged. nil means a transport for many concurrent calls that uses the environment's proxy.
	Transport http.RoundTripper
	UserAgent string // default "reprise"
}

// Timeouts limit how long one call may take, including connecting, sending and reading the response. AudD may still
// finish and bill a call that has timed out. Each timeout must be more than 0.
type Timeouts struct {
	Recognize  time.Duration // default 60 s; most calls take less than 2 s
	Enterprise time.Duration // default 1 h; a call takes longer for longer audio
	Upload     time.Duration // default 10 min, for a large track on a slow link
	Check      time.Duration // default 15 s; used by CheckToken
}

// DefaultConfig returns the default configuration. The caller must set Token.
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
		errs = append(errs, errors.New("field Token: required"))
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
