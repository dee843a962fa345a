package audd

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Client calls AudD. It is safe for concurrent use; one per account is enough.
type Client struct {
	cfg        Config
	transport  http.RoundTripper
	base       string // ends with a slash
	enterprise string
}

// New checks cfg and returns a client. Nothing is dialled.
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

// Close closes idle connections. Running calls go on; the client stays usable.
func (c *Client) Close() error {
	if t, ok := c.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
	return nil
}

// timeout is the shorter of the operation's and the injected client's.
func (c *Client) timeout(d time.Duration) time.Duration {
	if c.cfg.HTTPClient != nil && c.cfg.HTTPClient.Timeout > 0 {
		return min(d, c.cfg.HTTPClient.Timeout)
	}
	return d
}
