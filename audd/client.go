package audd

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Client calls AudD for one account. It is safe for concurrent use.
type Client struct {
	cfg       Config
	transport http.RoundTripper
	base      string // BaseURL with a slash at the end
}

// New validates cfg and returns a client. It opens no connection.
func New(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("check the AudD client configuration: %w", err)
	}
	return &Client{cfg: cfg, transport: newTransport(cfg.Transport), base: strings.TrimRight(cfg.BaseURL, "/") + "/"}, nil
}

// Close closes idle connections. Running calls continue and the client stays usable.
func (c *Client) Close() error {
	(&http.Client{Transport: c.transport}).CloseIdleConnections()
	return nil
}

// UploadRequest describes a track to store in a slot of the account's catalog. An upload overwrites the slot. AudD
// bills every upload, and has no calls to list, read or delete slots.
type UploadRequest struct {
	Audio      Audio
	AudioID    int64 // the slot, chosen by the caller
	BeforeBody BeforeBody
}

// Upload sends one track. The error is always an *Error. If its phase is PhaseSent, AudD may have stored and billed
// the track.
func (c *Client) Upload(ctx context.Context, in UploadRequest) (Meta, error) {
	r, err := c.do(ctx, call{
		op: "upload", url: c.base + "upload/", timeout: c.cfg.Timeouts.Upload, limit: maxResponse,
		fields: []field{{"audio_id", strconv.FormatInt(in.AudioID, 10)}}, audio: &in.Audio, before: in.BeforeBody,
	})
	return r.meta, err
}

// CheckToken returns nil if AudD accepts the token. It lists the account's streams, which AudD does not bill. The
// error is always an *Error.
func (c *Client) CheckToken(ctx context.Context) error {
	_, err := c.do(ctx, call{op: "getStreams", url: c.base + "getStreams/", timeout: c.cfg.Timeouts.Check, limit: maxResponse})
	return err
}
