package audd

import (
	"context"
	"encoding/json"
	"strings"
)

// RecognizeRequest describes a short clip. AudD analyses only its first 12 seconds.
type RecognizeRequest struct {
	Audio      Audio
	Return     []string // metadata providers: apple_music, spotify, deezer, musicbrainz
	Market     string   // country code for the providers; AudD's default is "us"
	BeforeBody BeforeBody
}

// Recognition is the result of Recognize.
type Recognition struct {
	Meta

	Song *Song           // nil if there is no match
	Raw  json.RawMessage // AudD's result value; "null" if there is no match
}

// Recognize sends one clip to the recognize endpoint. The error is always an *Error.
func (c *Client) Recognize(ctx context.Context, in RecognizeRequest) (Recognition, error) {
	var fields []field
	if len(in.Return) > 0 {
		fields = append(fields, field{"return", strings.Join(in.Return, ",")})
	}
	if in.Market != "" {
		fields = append(fields, field{"market", in.Market})
	}
	r, err := c.do(ctx, call{
		op: "recognize", url: c.base, timeout: c.cfg.Timeouts.Recognize, limit: maxResponse,
		fields: fields, audio: &in.Audio, before: in.BeforeBody,
	})
	if err != nil {
		return Recognition{}, err
	}
	return decodeRecognition(r), nil
}

func decodeRecognition(r success) Recognition {
	out := Recognition{Meta: r.meta, Raw: r.result}
	members := object(r.result)
	if len(members) > 0 {
		song := decodeSong(members)
		out.Song = &song
	}
	// PHP may encode an empty object as [].
	if list, ok := array(r.result); members == nil && !isNull(r.result) && (!ok || len(list) > 0) {
		out.warn("result is neither a song nor null")
	}
	return out
}
