package audd

import (
	"context"
	"encoding/json"
	"strings"
)

// RecognizeRequest asks for the song in a short clip. AudD analyses its first 12
// seconds.
type RecognizeRequest struct {
	Audio      Audio
	Return     []string // metadata providers: apple_music, spotify, deezer, musicbrainz
	Market     string   // country code for the providers; AudD's default is "us"
	BeforeBody BeforeBody
}

// Recognition is the answer to Recognize.
type Recognition struct {
	Meta

	Song *Song           // nil if there is no match
	Raw  json.RawMessage // AudD's result value; "null" if there is no match
}

// Recognize sends one clip to the standard endpoint. The error is always an *Error.
func (c *Client) Recognize(ctx context.Context, in RecognizeRequest) (Recognition, error) {
	var fields []field
	if len(in.Return) > 0 {
		fields = append(fields, field{"return", strings.Join(in.Return, ",")})
	}
	if in.Market != "" {
		fields = append(fields, field{"market", in.Market})
	}
	a, err := c.do(ctx, call{
		op: "recognize", url: c.base, timeout: c.cfg.Timeouts.Recognize, limit: maxAnswer,
		fields: fields, audio: &in.Audio, before: in.BeforeBody,
	})
	if err != nil {
		return Recognition{}, err
	}
	return decodeRecognition(a), nil
}

func decodeRecognition(a answer) Recognition {
	out := Recognition{Meta: a.meta, Raw: a.raw()}
	if isNull(a.result) {
		return out
	}
	members := object(a.result)
	if members == nil {
		// PHP may encode an empty object as []; any other type is unexpected.
		if list, ok := array(a.result); !ok || len(list) > 0 {
			out.Warning = joinWarning(out.Warning, "result is neither a song nor null")
		}
		return out
	}
	if len(members) > 0 {
		song := decodeSong(members)
		out.Song = &song
	}
	return out
}

// raw returns the result value, "null" if it is missing.
func (a answer) raw() json.RawMessage {
	if len(a.result) == 0 {
		return json.RawMessage("null")
	}
	return a.result
}
