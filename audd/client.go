package audd

import (
	"fmt"
	"net/http"
	"strings"
)

// Client calls AudD for one account. It is safe for concurrent use.
type Client struct {
	cfg        Config
	transport  http.RoundTripper
	base       string // with a slash at the end
	enterprise string
}

// New checks cfg and returns a client. It opens no connection.
func New(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("check the AudD client configuration: %w", err)
	}
	transport, err := newTransport(cfg.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("set up the AudD client's transport: %w", err)
	}
	return &Client{
		cfg:        cfg,
		transport:  transport,
		base:       strings.TrimRight(cfg.BaseURL, "/") + "/",
		enterprise: cfg.EnterpriseURL,
	}, nil
}

// Close closes idle connections. Running calls continue and the client stays
// usable.
func (c *Client) Close() error {
	(&http.Client{Transport: c.transport}).CloseIdleConnections()
	return nil
}
