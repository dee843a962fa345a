package intake

import (
	"bufio"
	"bytes"
	"encoding/binary"
)

// maxFrame is more than a frame of MPEG audio or AAC has, in bytes.
const maxFrame = 16 << 10

// framesLength adds up the frames of a format that has a header in every frame, wherever in the file they stand. A
// file without two consecutive frames has no audio, unless its only frame ends it.
func framesLength(r *bufio.Reader, frameAt func(b []byte) (length int, seconds float64)) audioLength {
	skipID3(r)
	total, audio, follows := 0.0, false, false
	for {
		b, err := r.Peek(maxFrame)
		if len(b) < 4 {
			break
		}
		length, seconds := frameAt(b)
		if length > 0 {
			total += seconds
			audio = audio || (seconds > 0 && (follows || (err != nil && length == len(b))))
			follows = true
		} else {
			follows = false
			if length = bytes.IndexByte(b[1:], 0xff) + 1; length == 0 {
				length = len(b)
			}
		}
		_, _ = r.Discard(min(length, len(b)))
	}
	if !audio {
		return counted(0)
	}
	return counted(total)
}

func skipID3(r *bufio.Reader) {
	head, _ := r.Peek(10)
	_, _ = r.Discard(int(id3Length(head)))
}

var adtsRates = [13]float64{96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350}

// adtsFrameAt reads the ADTS header at the start of b: 1 to 4 blocks of 1,024 samples (ISO 14496-3).
func adtsFrameAt(b []byte) (length int, seconds float64) {
	n := adtsLength(b)
	if n == 0 {
		return 0, 0
	}
	return n, 1024 * float64(b[6]&3+1) / adtsRates[b[2]>>2&0xf]
}

// flacLength adds up the blocks of all frames (RFC 9639). Frames have no length in their header, so each valid header
// counts, wherever it stands.
func flacLength(r *bufio.Reader) audioLength {
	skipID3(r)
	head, _ := r.Peek(4 + 4 + 34)
	if len(head) < 42 || string(head[:4]) != "fLaC" {
		return audioLength{}
	}
	rate := flacRate(head[8:])
	_, _ = r.Discard(4)
	for last := false; !last; {
		block, err := r.Peek(4)
		if err != nil {
			return counted(0)
		}
		last = block[0]&0x80 != 0
		_, _ = r.Discard(4 + int(binary.BigEndian.Uint32(block)&0xffffff))
	}
	total := 0.0
	for {
		b, _ := r.Peek(maxFrame)
		if len(b) < 6 {
			return counted(total)
		}
		n, samples, own := flacFrameAt(b)
		if own > 0 {
			rate = own
		}
		switch {
		case n == 0:
			if n = bytes.IndexByte(b[1:], 0xff) + 1; n == 0 {
				n = len(b)
			}
		case rate == 0:
			return audioLength{}
		default:
			total += samples / rate
		}
		_, _ = r.Discard(n)
	}
}

// flacRate is the sample rate in a STREAMINFO block of 34 bytes, in Hz.
func flacRate(b []byte) float64 {
	return float64(uint32(b[10])<<12 | uint32(b[11])<<4 | uint32(b[12])>>4)
}

var flacRates = [12]float64{0, 88200, 176400, 192000, 8000, 16000, 22050, 24000, 32000, 44100, 48000, 96000}

// flacFrameAt reads the frame header at the start of b and checks its CRC: its length in bytes (0 = no header), the
// samples of the frame, and the sample rate if the header has one.
func flacFrameAt(b []byte) (length int, samples, rate float64) {
	if len(b) < 6 || b[0] != 0xff || b[1]&0xfe != 0xf8 || b[2]>>4 == 0 || b[2]&0xf == 15 || b[3]>>4 > 10 || b[3]&1 != 0 {
		return 0, 0, 0
	}
	number := 1 // bytes of the frame or sample number, coded as in UTF-8
	for mask := byte(0x80); b[4]&mask != 0 && number < 8; mask >>= 1 {
		number++
	}
	if number > 1 {
		number--
	}
	tail := b[min(4+number, len(b)):]
	take := func(n int) (v float64) {
		for ; n > 0 && len(tail) > 0; n-- {
			v = v*256 + float64(tail[0])
			tail = tail[1:]
		}
		return v
	}
	switch size := int(b[2] >> 4); {
	case size == 1:
		samples = 192
	case size <= 5:
		samples = float64(int(144) << size)
	case size <= 7:
		samples = take(size-5) + 1
	default:
		samples = float64(int(1) << size)
	}
	switch code := b[2] & 0xf; code {
	case 12:
		rate = take(1) * 1000
	case 13:
		rate = take(2)
	case 14:
		rate = take(2) * 10
	default:
		rate = flacRates[code]
	}
	length = len(b) - len(tail)
	if len(tail) == 0 || crc8(b[:length]) != tail[0] {
		return 0, 0, 0
	}
	return length + 1, samples, rate
}

// crc8 is the checksum of a FLAC frame header: polynomial x^8 + x^2 + x + 1.
func crc8(b []byte) (crc byte) {
	for _, c := range b {
		crc ^= c
		for range 8 {
			if crc&0x80 != 0 {
				crc = crc<<1 ^ 7
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}
