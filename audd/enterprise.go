package audd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// EnterpriseRequest describes a long recording. AudD scans chunks of 12 s and bills each scanned chunk.
type EnterpriseRequest struct {
	Audio            Audio
	Skip             *int  // chunks to skip after every scanned run; nil = AudD's default
	Every            *int  // chunks per scanned run; nil = AudD's default
	Limit            *int  // scan at most this many chunks (AudD's documents disagree on the unit); nil = no limit
	SkipFirstSeconds int   // cannot be combined with UseTimecode
	UseTimecode      bool  // start at the time in a video URL
	AccurateOffsets  *bool // return each song's position within its chunk; nil = true
	BeforeBody       BeforeBody
}

// EnterpriseResult is the result of Enterprise.
type EnterpriseResult struct {
	Meta

	Chunks []Chunk         // in AudD's order; chunks without songs may be missing
	Raw    json.RawMessage // AudD's result value
}

// Chunk is one scanned piece of the recording.
type Chunk struct {
	Offset time.Duration // position in the recording; 0 if it is unreadable
	// Songs are alternative candidates, empty if nothing was recognised. Song.Extra has the score and, with accurate
	// offsets, start_offset and end_offset in milliseconds from Offset.
	Songs []Song
}

var errStart = errors.New("SkipFirstSeconds and UseTimecode cannot be combined")

// Enterprise sends a recording to the enterprise endpoint. The error is always an *Error.
func (c *Client) Enterprise(ctx context.Context, in EnterpriseRequest) (EnterpriseResult, error) {
	if in.SkipFirstSeconds > 0 && in.UseTimecode {
		return EnterpriseResult{}, &Error{Op: "enterprise", Kind: KindLocal, Phase: PhaseUnsent, Err: errStart}
	}
	r, err := c.do(ctx, call{
		op: "enterprise", url: c.cfg.EnterpriseURL, timeout: c.cfg.Timeouts.Enterprise, limit: maxEnterpriseResponse,
		fields: in.fields(), audio: &in.Audio, before: in.BeforeBody,
	})
	if err != nil {
		return EnterpriseResult{}, err
	}
	return decodeEnterprise(r), nil
}

func (in EnterpriseRequest) fields() []field {
	var out []field
	for _, f := range []struct {
		name  string
		value *int
	}{{"skip", in.Skip}, {"every", in.Every}, {"limit", in.Limit}} {
		if f.value != nil {
			out = append(out, field{f.name, strconv.Itoa(*f.value)})
		}
	}
	if in.SkipFirstSeconds > 0 {
		out = append(out, field{"skip_first_seconds", strconv.Itoa(in.SkipFirstSeconds)})
	}
	if in.UseTimecode {
		out = append(out, field{"use_timecode", "true"})
	}
	accurate := in.AccurateOffsets == nil || *in.AccurateOffsets
	return append(out, field{"accurate_offsets", strconv.FormatBool(accurate)})
}

func decodeEnterprise(r success) EnterpriseResult {
	out := EnterpriseResult{Meta: r.meta, Raw: r.result}
	list, ok := array(r.result)
	members := object(r.result)
	switch {
	case ok:
	case isNull(r.result), members != nil && len(members) == 0: // PHP may encode an empty array as {}
		return out
	default:
		list = []json.RawMessage{r.result} // a single chunk without an array
	}
	unreadable := 0
	for _, raw := range list {
		chunk, bad := decodeChunk(object(raw))
		unreadable += bad
		if chunk != nil {
			out.Chunks = append(out.Chunks, *chunk)
		}
	}
	if unreadable > 0 {
		out.warn(fmt.Sprintf("%d parts of the result could not be read", unreadable))
	}
	return out
}

// decodeChunk returns the chunk and the number of unreadable parts. The chunk is nil if members do not describe one.
func decodeChunk(members map[string]json.RawMessage) (_ *Chunk, bad int) {
	songsRaw, hasSongs := members["songs"]
	offset, known := parseOffset(members["offset"])
	if !hasSongs && !known {
		return nil, 1
	}
	chunk := &Chunk{Offset: offset}
	if !known {
		bad++
	}
	songs, ok := array(songsRaw)
	if !ok && !isNull(songsRaw) {
		bad++
	}
	for _, raw := range songs {
		if song := object(raw); len(song) > 0 {
			chunk.Songs = append(chunk.Songs, decodeSong(song))
		} else {
			bad++
		}
	}
	return chunk, bad
}

// maxOffset is the largest chunk position that parseOffset accepts.
const maxOffset = 366 * 24 * time.Hour

// parseOffset reads a chunk's position: "MM:SS", "HH:MM:SS", "SS" or a number of seconds. Minutes and seconds may
// exceed 59, and seconds may have a fraction. The result is rounded to milliseconds.
func parseOffset(raw json.RawMessage) (time.Duration, bool) {
	text, _ := scalar(raw)
	parts := strings.Split(strings.TrimSpace(text), ":")
	if len(parts) > 3 {
		return 0, false
	}
	var total float64
	for i, part := range parts {
		if part == "" || strings.Trim(part, "0123456789.") != "" {
			return 0, false
		}
		n, err := strconv.ParseFloat(part, 64)
		if err != nil || (i < len(parts)-1 && strings.Contains(part, ".")) {
			return 0, false
		}
		total = total*60 + n
	}
	if total > maxOffset.Seconds() {
		return 0, false
	}
	return time.Duration(total * float64(time.Second)).Round(time.Millisecond), true
}
