package intake

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
)

// mp4Table is how much of a box is read at most, in bytes. The tables of a recording of a year fit.
const mp4Table = 64 << 20

// mp4Track is an audio track. Decoders play each of its samples, whatever length the boxes state.
type mp4Track struct {
	id      uint32
	sample  float64 // length of a sample in seconds by the codec; 0 = the codec does not fix it
	samples float64
	stamped float64 // length in seconds by the time stamps
}

// mp4Length counts the samples of the longest audio track, in the tables of moov and in the fragments. The result is
// never shorter than the file states.
func mp4Length(r io.ReaderAt, size int64) audioLength {
	var tracks []*mp4Track
	stated, found := 0.0, false
	whole := mp4Boxes(r, 0, size, func(name string, from, to int64) {
		found = found || name == "moov"
		mp4Boxes(r, from, to, func(inner string, from, to int64) {
			switch name + "/" + inner {
			case "moov/mvhd":
				stated = mp4Time(readAt(r, from, 32, to))
			case "moov/trak":
				if t := mp4AudioTrack(r, from, to); t != nil {
					tracks = append(tracks, t)
				}
			case "moof/traf":
				mp4Fragment(r, from, to, tracks)
			}
		})
	})
	longest := 0.0
	for _, t := range tracks {
		if t.samples > 0 && t.sample == 0 {
			return audioLength{}
		}
		longest = max(longest, t.samples*t.sample, t.stamped)
	}
	switch {
	case longest > 0:
		return counted(max(longest, stated))
	case found || whole:
		return counted(0)
	}
	return audioLength{} // cut off before moov
}

// mp4Boxes calls visit with the body of each box between from and to, and reports whether the boxes fill the range.
// Only containers that hold audio are looked into.
func mp4Boxes(r io.ReaderAt, from, to int64, visit func(name string, from, to int64)) (whole bool) {
	for n := 0; from+8 <= to; n++ {
		head := readAt(r, from, 16, to)
		if len(head) < 8 || n == 1_000_000 {
			return false
		}
		length, header := int64(binary.BigEndian.Uint32(head)), int64(8)
		switch {
		case length == 0:
			length = to - from
		case length == 1 && len(head) == 16:
			length, header = int64(min(binary.BigEndian.Uint64(head[8:]), math.MaxInt64)), 16
		}
		if length < header || length > to-from {
			return false
		}
		visit(string(head[4:8]), from+header, from+length)
		from += length
	}
	return true
}

// mp4Time is the length that a movie or media header states, in seconds; 0 = unknown.
func mp4Time(b []byte) float64 {
	scale, length := 0.0, 0.0
	switch {
	case len(b) >= 32 && b[0] == 1:
		scale, length = float64(binary.BigEndian.Uint32(b[20:])), float64(binary.BigEndian.Uint64(b[24:]))
	case len(b) >= 20 && b[0] == 0 && binary.BigEndian.Uint32(b[16:]) != math.MaxUint32:
		scale, length = float64(binary.BigEndian.Uint32(b[12:])), float64(binary.BigEndian.Uint32(b[16:]))
	}
	if scale == 0 || length > math.MaxInt64 {
		return 0
	}
	return length / scale
}

// mp4AudioTrack reads a track, nil if it is no audio.
func mp4AudioTrack(r io.ReaderAt, from, to int64) *mp4Track {
	t := &mp4Track{}
	audio, scale, ticks := false, 0.0, 0.0
	depth := 0
	var visit func(name string, from, to int64)
	visit = func(name string, from, to int64) {
		b := func(n int) []byte { // n bytes of the body, zeros behind its end
			return append(readAt(r, from, n, to), make([]byte, n)...)[:n]
		}
		switch name {
		case "mdia", "minf", "stbl":
			if depth++; depth <= 3 {
				mp4Boxes(r, from, to, visit)
			}
			depth--
		case "tkhd":
			t.id = binary.BigEndian.Uint32(b(24)[12+8*int(b(1)[0]&1):])
		case "hdlr":
			audio = audio || string(b(12)[8:]) == "soun"
		case "mdhd":
			scale = float64(binary.BigEndian.Uint32(b(24)[12+8*int(b(1)[0]&1):]))
		case "stsd":
			t.sample = mp4Sample(readAt(r, from+8, 4096, to))
		case "stsz", "stz2":
			t.samples += float64(binary.BigEndian.Uint32(b(12)[8:]))
		case "stts":
			for entries := readAt(r, from+8, mp4Table, to); len(entries) >= 8; entries = entries[8:] {
				ticks += float64(binary.BigEndian.Uint32(entries)) * float64(binary.BigEndian.Uint32(entries[4:]))
			}
		}
	}
	mp4Boxes(r, from, to, visit)
	if !audio {
		return nil
	}
	if scale > 0 {
		t.stamped = ticks / scale
	}
	return t
}

// mp4Fragment adds the samples of a track fragment.
func mp4Fragment(r io.ReaderAt, from, to int64, tracks []*mp4Track) {
	id, samples := uint32(0), 0.0
	mp4Boxes(r, from, to, func(name string, from, to int64) {
		b := readAt(r, from, 8, to)
		switch {
		case len(b) < 8:
		case name == "tfhd":
			id = binary.BigEndian.Uint32(b[4:])
		case name == "trun":
			samples += float64(binary.BigEndian.Uint32(b[4:]))
		}
	})
	for _, t := range tracks {
		if t.id == id {
			t.samples += samples
		}
	}
}

// mp4Sample is the length of a sample in seconds by its description: AAC has 1,024 PCM samples, ALAC a number of its
// own. 0 = other codecs.
func mp4Sample(b []byte) float64 {
	const entry = 36 // bytes of an audio sample entry
	if len(b) < entry || len(b) < int(binary.BigEndian.Uint32(b)) {
		return 0
	}
	codec, config := string(b[4:8]), b[entry:binary.BigEndian.Uint32(b)]
	switch codec {
	case "mp4a":
		if i := bytes.Index(config, []byte("esds")); i >= 0 {
			return aacSample(config[i+4:])
		}
	case "alac":
		if i := bytes.Index(config, []byte("alac")); i >= 0 && len(config) >= i+8+24 {
			config = config[i+8:]
			if rate := float64(binary.BigEndian.Uint32(config[20:])); rate > 0 {
				return float64(binary.BigEndian.Uint32(config)) / rate
			}
		}
	}
	return 0
}

// aacSample reads the core's sample rate from an elementary stream descriptor (ISO 14496-1, 14496-3).
func aacSample(b []byte) float64 {
	descriptor := func(tag byte, skip int) bool { // enters a descriptor and skips its first bytes
		if len(b) == 0 || b[0] != tag {
			return false
		}
		b = b[1:]
		for more := true; more && len(b) > 0; b = b[1:] {
			more = b[0]&0x80 != 0
		}
		if len(b) < skip {
			return false
		}
		b = b[skip:]
		return true
	}
	if len(b) < 4 {
		return 0
	}
	b = b[4:]
	if !descriptor(3, 3) || len(b) == 0 {
		return 0
	}
	if !descriptor(4, 0) || len(b) < 13 || (b[0] != 0x40 && (b[0] < 0x66 || b[0] > 0x68)) { // AAC of MPEG-4 or MPEG-2
		return 0
	}
	b = b[13:]
	if !descriptor(5, 0) || len(b) < 2 {
		return 0
	}
	index := int(b[0]&7<<1 | b[1]>>7)
	if b[0]>>3 == 31 || index >= len(adtsRates) {
		return 0
	}
	return 1024 / adtsRates[index]
}
