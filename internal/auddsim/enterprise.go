package auddsim

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"
)

// chunkSeconds is the length of audio enterprise bills as one unit.
const chunkSeconds = 12

// songChunks is how many chunks in a row belong to the same made song: three minutes.
const songChunks = 15

type chunk struct {
	Songs  []Song `json:"songs"`
	Offset string `json:"offset"`
}

// scan is which chunks of a recording are looked at.
type scan struct {
	total       int64 // chunks there are
	skip, every int64
	limit       int64 // 0: none
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

// enterprise scans the recording and returns its chunks and what they cost.
func (c *call) enterprise() (answer, int64) {
	number := func(name string, least, fallback int64) int64 {
		n, err := strconv.ParseInt(c.sub.fields[name], 10, 64)
		if err != nil || n < least {
			return fallback
		}
		return n
	}
	skipFirst := number("skip_first_seconds", 0, 0)
	seconds := c.audioLength().Seconds() - float64(skipFirst)
	limit := number("limit", 1, 0)
	s := scan{total: max(int64(math.Ceil(seconds/chunkSeconds)), 1), skip: number("skip", 0, 0), every: number("every", 1, 1)}
	if !c.sim.cfg.LimitCountsMatches {
		s.limit, limit = limit, 0
	}
	units := s.count()
	chunks := c.chunks(s, skipFirst, limit)
	outcome := "no_match"
	for _, ch := range chunks {
		if len(ch.Songs) > 0 {
			outcome = "match"
		}
	}
	return c.success(raw(chunks), outcome), units
}

// chunks lists the scanned chunks that have songs, or all with Config.ListEmptyChunks.
func (c *call) chunks(s scan, skipFirst, maxSongs int64) []chunk {
	out, songs := []chunk{}, int64(0)
	n := s.count()
	for i := range n {
		at := s.index(i)
		ch := chunk{Songs: []Song{}, Offset: clock(int(skipFirst+at*chunkSeconds), s.total*chunkSeconds >= 3600)}
		if song, ok := c.chunkSong(at, i, n); ok && (maxSongs == 0 || songs < maxSongs) {
			ch.Songs = append(ch.Songs, song)
			songs++
		}
		if len(ch.Songs) > 0 || c.sim.cfg.ListEmptyChunks {
			out = append(out, ch)
		}
	}
	return out
}

// chunkSong is the song of the chunk at a position, the i-th of n scanned ones. Without a rule or a catalog entry a
// matching recording is a row of songs of three minutes, about one in four of them unknown.
func (c *call) chunkSong(at, i, n int64) (Song, bool) {
	var song Song
	switch want := c.wanted(); want {
	case ResultNull:
		return Song{}, false
	case ResultMatch:
		song = c.song(int(at / songChunks))
		if c.rule != nil && len(c.rule.Songs) > 0 {
			song = c.song(int(i * int64(len(c.rule.Songs)) / n))
		}
	default:
		id, own := c.sim.catalog.find(c.sub.token, c.content.hash, time.Now())
		if own {
			song = Song{Timecode: clock(int(at*chunkSeconds), false), Score: 100, AudioID: &id}
			break
		}
		if !c.contentMatches() || at >= songChunks && coin(c.contentNumber(), uint64(2+at/songChunks)) < 0.25 {
			return Song{}, false
		}
		song = c.song(int(at / songChunks))
	}
	if song.Score == 0 {
		song.Score = 90
	}
	if song.ISRC == "" && song.AudioID == nil {
		id := uint32(mix(c.contentNumber() + uint64(at/songChunks)))
		song.ISRC, song.UPC = fmt.Sprintf("QZSIM%07d", id%10_000_000), fmt.Sprintf("00%010d", id)
	}
	if c.sub.fields["accurate_offsets"] == "true" {
		start, end := int64(0), int64(chunkSeconds*1000)
		song.StartOffset, song.EndOffset = &start, &end
	}
	return song, true
}

// audioLength is the rule's, the WAV header's, or an estimate from the size.
func (c *call) audioLength() time.Duration {
	if c.rule != nil && c.rule.Duration > 0 {
		return c.rule.Duration
	}
	if c.sub.url != "" && c.content.size == 0 {
		return c.sim.cfg.URLDuration
	}
	rate := c.sim.cfg.BytesPerSecond
	if r := wavRate(c.content.head); r > 0 {
		rate = r
	}
	return time.Duration(float64(c.content.size) / float64(rate) * float64(time.Second))
}

// wavRate reads the bytes per second out of a WAV header whose fmt chunk comes first; 0 if it is none.
func wavRate(head []byte) int64 {
	if len(head) < 32 || string(head[:4]) != "RIFF" || string(head[8:16]) != "WAVEfmt " {
		return 0
	}
	return int64(binary.LittleEndian.Uint32(head[28:32]))
}
