package intake

import (
	"encoding/binary"
	"io"
	"math"
)

// maxSeconds is the longest duration taken from a header, in seconds. A header that claims more is wrong.
const maxSeconds = 10 * 365 * 24 * 3600

// duration reads the length of the audio in seconds from its headers, without decoding; 0 = unknown. It never
// guesses, because the length bounds what AudD may bill for an enterprise call.
func duration(r io.ReaderAt, size int64, format string) float64 {
	s := 0.0
	switch format {
	case "audio/wav":
		s = wavDuration(r, size)
	case "audio/flac":
		s = flacDuration(r, size)
	case "audio/aiff":
		s = aiffDuration(r, size)
	case "audio/mpeg":
		s = mpegDuration(r, size)
	case "audio/ogg", "video/ogg", "application/ogg":
		s = oggDuration(r, size)
	case "audio/mp4", "audio/x-m4a", "video/mp4", "video/x-m4v", "video/quicktime", "video/3gpp", "video/3gpp2", "video/mj2":
		s = mp4Duration(r, size)
	}
	if math.IsNaN(s) || s <= 0 || s > maxSeconds {
		return 0
	}
	return s
}

// riffChunks calls visit for each chunk of a RIFF or IFF file until it returns true.
func riffChunks(r io.ReaderAt, size int64, order binary.ByteOrder, visit func(id string, body, length int64) bool) {
	for off, n := int64(12), 0; n < 1000; n++ {
		head := readAt(r, off, 8, size)
		if len(head) < 8 {
			return
		}
		length := int64(order.Uint32(head[4:]))
		if visit(string(head[:4]), off+8, length) {
			return
		}
		off += 8 + length + length&1
	}
}

func wavDuration(r io.ReaderAt, size int64) (seconds float64) {
	var perSecond, long int64
	riffChunks(r, size, binary.LittleEndian, func(id string, body, length int64) bool {
		switch id {
		case "ds64": // RF64: the 64-bit length of data
			if b := readAt(r, body, 16, size); len(b) == 16 {
				long = int64(min(binary.LittleEndian.Uint64(b[8:]), math.MaxInt64))
			}
		case "fmt ":
			if b := readAt(r, body, 12, size); len(b) == 12 {
				perSecond = int64(binary.LittleEndian.Uint32(b[8:]))
			}
		case "data":
			if length == math.MaxUint32 && long > 0 {
				length = long
			}
			// A streaming writer leaves 0 or the maximum; a killed one leaves more than the file has.
			if rest := size - body; length == 0 || length > rest {
				length = rest
			}
			if perSecond > 0 {
				seconds = float64(length) / float64(perSecond)
			}
			return true
		}
		return false
	})
	return seconds
}

func aiffDuration(r io.ReaderAt, size int64) (seconds float64) {
	riffChunks(r, size, binary.BigEndian, func(id string, body, _ int64) bool {
		if id != "COMM" {
			return false
		}
		if b := readAt(r, body, 18, size); len(b) == 18 {
			// The sample rate is an 80-bit float: exponent, then mantissa with its leading one.
			exponent := int(binary.BigEndian.Uint16(b[8:])&0x7fff) - 16383 - 63
			rate := math.Ldexp(float64(binary.BigEndian.Uint64(b[10:])), exponent)
			if rate > 0 {
				seconds = float64(binary.BigEndian.Uint32(b[2:])) / rate
			}
		}
		return true
	})
	return seconds
}

func flacDuration(r io.ReaderAt, size int64) float64 {
	off := id3Length(readAt(r, 0, 10, size))
	b := readAt(r, off, 26, size)
	if len(b) < 26 || string(b[:4]) != "fLaC" || b[4]&0x7f != 0 {
		return 0
	}
	return flacStreamInfo(b[8:])
}

// flacStreamInfo computes the seconds from sample rate and number of samples; 0 samples = unknown.
func flacStreamInfo(b []byte) float64 {
	rate := uint32(b[10])<<12 | uint32(b[11])<<4 | uint32(b[12])>>4
	samples := uint64(b[13]&0xf)<<32 | uint64(binary.BigEndian.Uint32(b[14:]))
	if rate == 0 {
		return 0
	}
	return float64(samples) / float64(rate)
}
