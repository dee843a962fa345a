package audd

import "context"

// CheckToken asks AudD to list the account's streams, the one call that is not
// billed, and so finds out whether the token is accepted. The error is always an
// *Error.
func (c *Client) CheckToken(ctx context.Context) error {
	_, err := c.do(ctx, call{
		op: "getStreams", url: c.base + "getStreams/", timeout: c.cfg.Timeouts.Check, limit: maxAnswer,
	})
	return err
}
