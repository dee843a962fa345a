package audd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// ChunkLength is the piece of audio AudD recognises and bills at a time.
const ChunkLength = 12 * time.Second

// EnterpriseRequest asks for all songs of a long recording. AudD scans it in
// chunks of 12 s; each scanned chunk is billed.
type EnterpriseRequest struct {
	Audio            Audio
	Skip             *int  // chunks to skip after each run of scanned ones; nil leaves it to AudD
	Every            *int  // chunks to scan in a run; nil leaves it to AudD
	Limit            *int  // AudD's bound on chunks (its sources disagree on the unit); nil: none
	SkipFirstSeconds int   // start later; 0 = at the beginning. Not with UseTimecode
	UseTimecode      bool  // start at the time a video URL carries
	AccurateOffsets  *bool // where in each chunk a song lies; nil means true
	BeforeBody       BeforeBody
}

// EnterpriseResult is the answer to Enterprise.
type EnterpriseResult struct {
	Meta

	Chunks        []Chunk         // in AudD's order; unmatched chunks may be listed or left out
	ExecutionTime string          // AudD's own word for its working time, such as "159.2ms"
	Raw           json.RawMessage // AudD's result value as sent
}

// Chunk is one scanned piece of the recording.
type Chunk struct {
	Offset        time.Duration // where it begins in the recording
	OffsetUnknown bool          // AudD's offset could not be read; Offset is 0
	Songs         []ChunkSong   // competing candidates; empty: nothing recognised
	Extra         map[string]json.RawMessage
}

// ChunkSong is one candidate of a chunk.
type ChunkSong struct {
	Song

	Score int // 0–100, higher is better
	// Start and End are absolute positions in the recording. Without accurate
	// offsets in the answer they are the bounds of the chunk.
	Start, End time.Duration
	// Accurate: AudD said where in the chunk the song lies.
	Accurate bool
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
	out.ExecutionTime, _ = scalar(a.fields["execution_time"])
	if isNull(a.result) {
		return out
	}
	list, ok := array(a.result)
	if members := object(a.result); members != nil && len(members) == 0 {
		return out // PHP's other way to write an empty array
	}
	if !ok {
		list = []json.RawMessage{a.result} // a lone chunk
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

// decodeChunk reads one chunk (nil if it is none) and counts what it could not read.
func decodeChunk(members map[string]json.RawMessage) (_ *Chunk, bad int) {
	if len(members) == 0 {
		return nil, 1
	}
	songsRaw, hasSongs := members["songs"]
	offset, known := parseOffset(members["offset"])
	if !hasSongs && !known {
		return nil, 1
	}
	chunk := &Chunk{Offset: offset, OffsetUnknown: !known}
	if !known {
		bad++
	}
	songs, ok := array(songsRaw)
	if !ok && !isNull(songsRaw) {
		bad++
	} else {
		delete(members, "songs")
	}
	for _, raw := range songs {
		song := object(raw)
		if len(song) == 0 {
			bad++
			continue
		}
		chunk.Songs = append(chunk.Songs, decodeChunkSong(chunk.Offset, song))
	}
	if known {
		delete(members, "offset")
	}
	if len(members) > 0 {
		chunk.Extra = members
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
