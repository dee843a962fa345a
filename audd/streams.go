package audd

import (
	"context"
	"encoding/json"
)

// Stream is one live stream the account monitors.
type Stream struct {
	RadioID int64
	URL     string // may hold the stream's own secrets
	Running bool
	Extra   map[string]json.RawMessage // everything else, as AudD sent it
}

// Streams lists the account's streams: the one call that is not billed, and so
// the check of a token. The error is always an *Error.
func (c *Client) Streams(ctx context.Context) ([]Stream, error) {
	a, err := c.do(ctx, call{
		op: "getStreams", url: c.base + "getStreams/", timeout: c.cfg.Timeouts.Check, limit: maxAnswer,
	})
	if err != nil {
		return nil, err
	}
	return decodeStreams(a), nil
}

func decodeStreams(a answer) []Stream {
	list, _ := array(a.result)
	out := make([]Stream, 0, len(list))
	for _, raw := range list {
		members := object(raw)
		if members == nil {
			continue
		}
		var s Stream
		if id, ok := integer(members["radio_id"]); ok {
			s.RadioID = id
			delete(members, "radio_id")
		}
		if u, ok := scalar(members["url"]); ok {
			s.URL = u
			delete(members, "url")
		}
		if running, ok := boolean(members["stream_running"]); ok {
			s.Running = running
			delete(members, "stream_running")
		}
		if len(members) > 0 {
			s.Extra = members
		}
		out = append(out, s)
	}
	return out
}
