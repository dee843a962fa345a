package auddsim

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"
)

// chunkSeconds is how much audio enterprise bills as one unit.
const chunkSeconds = 12

// songChunks is the length of a made song in chunks: three minutes.
const songChunks = 15

type chunk struct {
	Songs  []Song `json:"songs"`
	Offset string `json:"offset"`
}

// scan selects the chunks of a recording that are scanned.
type scan struct {
	total       int64 // chunks of the recording
	skip, every int64
	limit       int64 // 0 = none
}

// count is the number of chunks scanned: of each skip+every chunks the first every.
func (s scan) count() int64 {
	n := s.total
	if period := s.skip + s.every; s.skip > 0 {
		n = s.total/period*s.every + min(s.total%period, s.every)
	}
	if s.limit > 0 {
		n = min(n, s.limit)
	}
	return max(n, 1)
}

// index is the position in the recording of the i-th chunk scanned.
func (s scan) index(i int64) int64 {
	return i/s.every*(s.skip+s.every) + i%s.every
}

func (c *call) enterprise() (response, int64) {
	number := func(name string, least, fallback int64) int64 {
		n, err := strconv.ParseInt(c.sub.fields[name], 10, 64)
		if err != nil || n < least {
			return fallback
		}
		return n
	}
	skipFirst := number("skip_first_seconds", 0, 0)
	seconds := c.audioLength().Seconds() - float64(skipFirst)
	s := scan{total: max(int64(math.Ceil(seconds/chunkSeconds)), 1),
		skip: number("skip", 0, 0), every: number("every", 1, 1), limit: number("limit", 1, 0)}
	chunks, outcome, units := []chunk{}, "no_match", s.count()
	for i := range units {
		at := s.index(i)
		if song, ok := c.chunkSong(at, i, units); ok { // chunks without songs are omitted
			chunks = append(chunks, chunk{[]Song{song}, clock(int(skipFirst+at*chunkSeconds), s.total*chunkSeconds >= 3600)})
			outcome = "match"
		}
	}
	return c.success(raw(chunks), outcome), units
}

// chunkSong is the song of the chunk at a position, which is the i-th of n scanned ones. Made songs last three minutes; the
// songs of a rule are spread evenly over the chunks.
func (c *call) chunkSong(at, i, n int64) (Song, bool) {
	number := at / songChunks
	if c.rule != nil && len(c.rule.Songs) > 0 {
		number = i * int64(len(c.rule.Songs)) / n
	}
	song, found := c.find(int(number), clock(int(at*chunkSeconds), false))
	if !found {
		return Song{}, false
	}
	song.Score = cmp.Or(song.Score, 90)
	if song.ISRC == "" && song.AudioID == nil {
		id := uint32(mix(c.contentNumber() + uint64(at/songChunks)))
		song.ISRC, song.UPC = fmt.Sprintf("QZSIM%07d", id%10_000_000), fmt.Sprintf("00%010d", id)
	}
	if c.sub.fields["accurate_offsets"] == "true" {
		song.StartOffset, song.EndOffset = new(int64), new(int64(chunkSeconds*1000))
	}
	return song, true
}

// audioLength is the length of the audio: from the rule, the WAV header, or estimated from the size.
func (c *call) audioLength() time.Duration {
	if c.rule != nil && c.rule.Duration > 0 {
		return c.rule.Duration
	}
	if c.sub.fields["url"] != "" && c.content.size == 0 {
		return c.sim.cfg.URLDuration
	}
	rate := cmp.Or(wavRate(c.content.head), c.sim.cfg.BytesPerSecond)
	return time.Duration(float64(c.content.size) / float64(rate) * float64(time.Second))
}

// wavRate reads the bytes per second from a WAV header whose fmt chunk comes first; 0 = it is none.
func wavRate(head []byte) int64 {
	if len(head) < 32 || string(head[:4]) != "RIFF" || string(head[8:16]) != "WAVEfmt " {
		return 0
	}
	return int64(binary.LittleEndian.Uint32(head[28:32]))
}
