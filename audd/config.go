package audd

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// AudD's hosts.
const (
	DefaultBaseURL       = "https://api.audd.io/"
	DefaultEnterpriseURL = "https://enterprise.audd.io/"
)

// Timeouts bound one whole call each: connecting, sending and reading the
// answer. They are context deadlines, so they hold with any http.Client. AudD
// may finish and bill a call that was given up here.
type Timeouts struct {
	Recognize  time.Duration // default 60 s; usual answer under 2 s
	Enterprise time.Duration // default 1 h; grows with the audio
	Upload     time.Duration // default 10 min; mostly sending
	Check      time.Duration // getStreams, default 15 s
}

// Config is what a Client needs. Start from DefaultConfig.
type Config struct {
	// Token returns the API token; called once a call and from many goroutines,
	// so that a token can be rotated while calls run. Surrounding blanks are ignored.
	Token func() string
	// BaseURL is where recognize, upload/ and getStreams/ live (default DefaultBaseURL).
	BaseURL string
	// EnterpriseURL is the enterprise endpoint itself (default DefaultEnterpriseURL).
	EnterpriseURL string
	Timeouts      Timeouts
	// HTTPClient lends its Transport and, if shorter than Timeouts, its Timeout;
	// its Jar and CheckRedirect are not used. An *http.Transport is cloned and
	// pinned to HTTP/1.1, any other RoundTripper is used as it is. Nil (the
	// default) means a transport sized for many slots, with the proxy of the environment.
	HTTPClient *http.Client
	UserAgent  string // default "reprise"
}

// DefaultConfig is a complete configuration but for the token.
func DefaultConfig() Config {
	return Config{
		BaseURL:       DefaultBaseURL,
		EnterpriseURL: DefaultEnterpriseURL,
		Timeouts: Timeouts{
			Recognize:  60 * time.Second,
			Enterprise: time.Hour,
			Upload:     10 * time.Minute,
			Check:      15 * time.Second,
		},
		UserAgent: "reprise",
	}
}

// Validate reports every field that cannot be used, by name. It never quotes a
// URL, which might hold a password.
func (c Config) Validate() error {
	var errs []error
	if c.Token == nil {
		errs = append(errs, errors.New("no Token: want a function that returns the API token"))
	}
	errs = append(errs, validateURL("BaseURL", c.BaseURL), validateURL("EnterpriseURL", c.EnterpriseURL))
	for _, t := range []struct {
		name  string
		value time.Duration
	}{
		{"Timeouts.Recognize", c.Timeouts.Recognize},
		{"Timeouts.Enterprise", c.Timeouts.Enterprise},
		{"Timeouts.Upload", c.Timeouts.Upload},
		{"Timeouts.Check", c.Timeouts.Check},
	} {
		if t.value <= 0 {
			errs = append(errs, fmt.Errorf("%s %s: want more than 0", t.name, t.value))
		}
	}
	if strings.ContainsFunc(c.UserAgent, func(r rune) bool { return r < ' ' || r > '~' }) {
		errs = append(errs, errors.New("UserAgent: want printable ASCII"))
	}
	return errors.Join(errs...)
}

func validateURL(name, raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return fmt.Errorf("%s: want an http or https URL", name)
	case u.User != nil:
		return fmt.Errorf("%s: must not hold a user or password", name)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return fmt.Errorf("%s: must not hold a query or fragment", name)
	}
	return nil
}
