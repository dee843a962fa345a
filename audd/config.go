package audd

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// AudD's hosts.
const (
	DefaultBaseURL       = "https://api.audd.io/"
	DefaultEnterpriseURL = "https://enterprise.audd.io/"
)

// Config configures a Client. Start from DefaultConfig.
type Config struct {
	// Token returns the API token. It is called once per call, concurrently, so
	// that a token can be rotated at any time. Surrounding space is ignored. Required.
	Token func() string
	// BaseURL is the URL of recognize and the parent of upload/ and getStreams/.
	// Default DefaultBaseURL.
	BaseURL string
	// EnterpriseURL is the URL of the enterprise endpoint. Default
	// DefaultEnterpriseURL.
	EnterpriseURL string
	Timeouts      Timeouts
	// HTTPClient provides the transport and, if shorter than Timeouts, the
	// timeout; its Jar and CheckRedirect are not used. An *http.Transport is cloned
	// and restricted to HTTP/1.1, any other RoundTripper is used unchanged. Default
	// nil: a transport for many concurrent calls, with the proxy of the environment.
	HTTPClient *http.Client
	UserAgent  string // default "reprise"
}

// DefaultConfig returns a configuration that lacks only the token.
func DefaultConfig() Config {
	return Config{
		BaseURL:       DefaultBaseURL,
		EnterpriseURL: DefaultEnterpriseURL,
		Timeouts:      DefaultTimeouts(),
		UserAgent:     "reprise",
	}
}

// Validate reports every invalid field by name. It quotes no URL, which may hold
// a password.
func (c Config) Validate() error {
	var errs []error
	if c.Token == nil {
		errs = append(errs, errors.New("field Token: must be a function that returns the API token"))
	}
	errs = append(errs, validateURL("BaseURL", c.BaseURL), validateURL("EnterpriseURL", c.EnterpriseURL))
	errs = append(errs, c.Timeouts.validate()...)
	if strings.ContainsFunc(c.UserAgent, func(r rune) bool { return r < ' ' || r > '~' }) {
		errs = append(errs, errors.New("UserAgent: must be printable ASCII"))
	}
	return errors.Join(errs...)
}

func validateURL(name, raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return fmt.Errorf("%s: must be an http or https URL", name)
	case u.User != nil:
		return fmt.Errorf("%s: must not hold a user or password", name)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return fmt.Errorf("%s: must not hold a query or fragment", name)
	}
	return nil
}
