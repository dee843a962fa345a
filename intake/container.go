package intake

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
)

// oggTail is how much of the end is searched for the last page, in bytes. A page has at most 65,307.
const oggTail = 128 << 10

type oggStream struct {
	rate    float64 // granules per second; 0 = no known audio codec
	preSkip float64
}

// oggDuration computes the seconds from the granule position of the last page. It returns 0 for chained files,
// where another stream begins later: their last page counts only the last link.
func oggDuration(r io.ReaderAt, size int64) float64 {
	streams := map[uint32]oggStream{}
	head := readAt(r, 0, headBytes, size)
	for len(head) >= 27 && bytes.HasPrefix(head, []byte("OggS")) && head[5]&2 != 0 { // the page begins a stream
		body, length := oggPage(head)
		if length == 0 {
			break
		}
		streams[binary.LittleEndian.Uint32(head[14:])] = oggCodec(body)
		head = head[length:]
	}
	tail := readAt(r, max(0, size-oggTail), oggTail, size)
	seconds := 0.0
	for i := 0; ; {
		next := bytes.Index(tail[i:], []byte("OggS\x00"))
		if next < 0 || i+next+27 > len(tail) {
			return seconds
		}
		page := tail[i+next:]
		i += next + 5
		stream, ours := streams[binary.LittleEndian.Uint32(page[14:])]
		granule := int64(binary.LittleEndian.Uint64(page[6:]))
		if !ours {
			return 0
		}
		if stream.rate > 0 && granule > 0 {
			seconds = max(seconds, (float64(granule)-stream.preSkip)/stream.rate)
		}
	}
}

// oggPage returns the body and the length of the page at the start of b; the length is 0 if the page is cut off.
func oggPage(b []byte) (body []byte, length int) {
	segments := int(b[26])
	start := 27 + segments
	if len(b) < start {
		return nil, 0
	}
	length = start
	for _, n := range b[27:start] {
		length += int(n)
	}
	if len(b) < length {
		return nil, 0
	}
	return b[start:length], length
}

func oggCodec(b []byte) oggStream {
	switch {
	case bytes.HasPrefix(b, []byte("\x01vorbis")) && len(b) >= 16:
		return oggStream{rate: float64(binary.LittleEndian.Uint32(b[12:]))}
	case bytes.HasPrefix(b, []byte("OpusHead")) && len(b) >= 12:
		return oggStream{rate: 48000, preSkip: float64(binary.LittleEndian.Uint16(b[10:]))}
	case bytes.HasPrefix(b, []byte("Speex   ")) && len(b) >= 40:
		return oggStream{rate: float64(binary.LittleEndian.Uint32(b[36:]))}
	case bytes.HasPrefix(b, []byte("\x7fFLAC")) && len(b) >= 13+4+18:
		info := b[17:]
		return oggStream{rate: float64(uint32(info[10])<<12 | uint32(info[11])<<4 | uint32(info[12])>>4)}
	}
	return oggStream{}
}

// mp4Duration reads the seconds from moov/mvhd, or from moov/mvex/mehd of a fragmented file.
func mp4Duration(r io.ReaderAt, size int64) float64 {
	from, to, ok := mp4Box(r, 0, size, "moov")
	if !ok {
		return 0
	}
	head, _, ok := mp4Box(r, from, to, "mvhd")
	b := readAt(r, head, 32, to)
	if !ok || len(b) < 20 {
		return 0
	}
	scale, length := binary.BigEndian.Uint32(b[12:]), uint64(binary.BigEndian.Uint32(b[16:]))
	unknown := uint64(math.MaxUint32)
	if b[0] == 1 && len(b) == 32 {
		scale, length, unknown = binary.BigEndian.Uint32(b[20:]), binary.BigEndian.Uint64(b[24:]), math.MaxUint64
	}
	if length == 0 || length == unknown {
		length = fragmented(r, from, to)
	}
	if scale == 0 {
		return 0
	}
	return float64(length) / float64(scale)
}

func fragmented(r io.ReaderAt, from, to int64) uint64 {
	from, to, ok := mp4Box(r, from, to, "mvex")
	if !ok {
		return 0
	}
	at, to, ok := mp4Box(r, from, to, "mehd")
	b := readAt(r, at, 12, to)
	switch {
	case ok && len(b) == 12 && b[0] == 1:
		return binary.BigEndian.Uint64(b[4:])
	case ok && len(b) >= 8:
		return uint64(binary.BigEndian.Uint32(b[4:]))
	}
	return 0
}

// mp4Box finds a box by name between from and to and returns where its body begins and ends.
func mp4Box(r io.ReaderAt, from, to int64, name string) (body, end int64, ok bool) {
	for n := 0; n < 10_000 && from+8 <= to; n++ {
		head := readAt(r, from, 16, to)
		if len(head) < 8 {
			return 0, 0, false
		}
		length, header := int64(binary.BigEndian.Uint32(head)), int64(8)
		switch {
		case length == 0:
			length = to - from
		case length == 1 && len(head) == 16:
			length, header = int64(min(binary.BigEndian.Uint64(head[8:]), math.MaxInt64)), 16
		}
		if length < header || length > to-from {
			return 0, 0, false
		}
		if string(head[4:8]) == name {
			return from + header, from + length, true
		}
		from += length
	}
	return 0, 0, false
}
