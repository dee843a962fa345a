package audd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// ChunkLength is the length of audio that AudD recognises and bills as one unit.
const ChunkLength = 12 * time.Second

// EnterpriseRequest asks for all songs of a long recording. AudD scans chunks of
// 12 s and bills each scanned chunk.
type EnterpriseRequest struct {
	Audio            Audio
	Skip             *int  // chunks to skip after every scanned run; nil = AudD's default
	Every            *int  // chunks per scanned run; nil = AudD's default
	Limit            *int  // most chunks (AudD's sources disagree on the unit); nil = no limit
	SkipFirstSeconds int   // excludes UseTimecode
	UseTimecode      bool  // start at the time in a video URL
	AccurateOffsets  *bool // positions within the chunks; nil = true
	BeforeBody       BeforeBody
}

// EnterpriseResult is the answer to Enterprise.
type EnterpriseResult struct {
	Meta

	Chunks []Chunk         // in AudD's order; chunks without songs may be missing
	Raw    json.RawMessage // AudD's result value
}

// Chunk is one scanned piece of the recording.
type Chunk struct {
	Offset time.Duration // position in the recording; 0 if it is unreadable
	Songs  []ChunkSong   // alternative candidates; empty if nothing was recognised
}

// ChunkSong is one candidate of a chunk.
type ChunkSong struct {
	Song

	Score int // 0–100, higher is better
	// Start and End are absolute positions in the recording. Without accurate
	// offsets in the answer they are the bounds of the chunk.
	Start, End time.Duration
	Accurate   bool // AudD sent the position within the chunk
}

var errStart = errors.New("SkipFirstSeconds and UseTimecode exclude each other")

// Enterprise sends a recording to the enterprise endpoint. The error is always an *Error.
func (c *Client) Enterprise(ctx context.Context, in EnterpriseRequest) (EnterpriseResult, error) {
	if in.SkipFirstSeconds > 0 && in.UseTimecode {
		return EnterpriseResult{}, &Error{Op: "enterprise", Kind: KindLocal, Phase: PhaseUnsent, Err: errStart}
	}
	a, err := c.do(ctx, call{
		op: "enterprise", url: c.enterprise, timeout: c.cfg.Timeouts.Enterprise, limit: maxEnterpriseAnswer,
		fields: in.fields(), audio: &in.Audio, before: in.BeforeBody,
	})
	if err != nil {
		return EnterpriseResult{}, err
	}
	return decodeEnterprise(a), nil
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

func decodeEnterprise(a answer) EnterpriseResult {
	out := EnterpriseResult{Meta: a.meta, Raw: a.raw()}
	if isNull(a.result) {
		return out
	}
	list, ok := array(a.result)
	if members := object(a.result); members != nil && len(members) == 0 {
		return out // PHP may encode an empty array as {}
	}
	if !ok {
		list = []json.RawMessage{a.result} // a single chunk without an array
	}
	skipped := 0
	for _, raw := range list {
		chunk, bad := decodeChunk(object(raw))
		skipped += bad
		if chunk != nil {
			out.Chunks = append(out.Chunks, *chunk)
		}
	}
	if skipped > 0 {
		out.Warning = joinWarning(out.Warning, fmt.Sprintf("%d parts of the result could not be read", skipped))
	}
	return out
}

// decodeChunk reads one chunk, nil if it is not one, and counts its unreadable
// parts.
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
		song := object(raw)
		if len(song) == 0 {
			bad++
			continue
		}
		chunk.Songs = append(chunk.Songs, decodeChunkSong(chunk.Offset, song))
	}
	return chunk, bad
}

func decodeChunkSong(offset time.Duration, members map[string]json.RawMessage) ChunkSong {
	out := ChunkSong{Start: offset, End: offset + ChunkLength}
	if score, ok := number(members["score"]); ok && score >= -1e6 && score <= 1e6 {
		out.Score = int(score)
		delete(members, "score")
	}
	start, hasStart := milliseconds(members["start_offset"])
	end, hasEnd := milliseconds(members["end_offset"])
	if hasStart {
		out.Start = max(0, offset+start)
		delete(members, "start_offset")
	}
	if hasEnd {
		out.End = max(out.Start, offset+end)
		delete(members, "end_offset")
	}
	out.Accurate = hasStart && hasEnd
	out.Song = decodeSong(members)
	return out
}
