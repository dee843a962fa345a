package intake

import (
	"bytes"
	"encoding/binary"
	"io"
)

// mpegFrame is the header of one MPEG audio frame.
type mpegFrame struct {
	version  int // 1, 2, or 25 for 2.5
	layer    int
	bitrate  int // bits per second
	rate     int // samples per second
	channels int
	samples  int // per frame
	length   int // bytes, padding included
	padding  int // bytes
}

func (f mpegFrame) sameKind(g mpegFrame) bool {
	return f.version == g.version && f.layer == g.layer && f.rate == g.rate
}

// Bitrates in kbit/s by index, for MPEG 1 layers I to III and MPEG 2 layer I and layers II and III (ISO 11172-3,
// 13818-3).
var (
	bitrates1 = [4][16]int{
		1: {0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448},
		2: {0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},
		3: {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
	}
	bitrates2 = [4][16]int{
		1: {0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},
		2: {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
		3: {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
	}
	sampleRates = map[int][3]int{1: {44100, 48000, 32000}, 2: {22050, 24000, 16000}, 25: {11025, 12000, 8000}}
)

// mpegAt decodes the frame header at the start of b.
func mpegAt(b []byte) (f mpegFrame, ok bool) {
	if len(b) < 4 || b[0] != 0xff || b[1]&0xe0 != 0xe0 {
		return f, false
	}
	f.version = [4]int{25, 0, 2, 1}[b[1]>>3&3]
	f.layer = [4]int{0, 3, 2, 1}[b[1]>>1&3]
	rate := b[2] >> 2 & 3
	if f.version == 0 || f.layer == 0 || rate == 3 {
		return f, false
	}
	table := &bitrates2
	if f.version == 1 {
		table = &bitrates1
	}
	f.bitrate = table[f.layer][b[2]>>4] * 1000
	f.rate = sampleRates[f.version][rate]
	if f.bitrate == 0 { // free format or forbidden
		return f, false
	}
	f.channels = 2
	if b[3]>>6 == 3 {
		f.channels = 1
	}
	f.padding = int(b[2] >> 1 & 1)
	switch {
	case f.layer == 1: // padding is a slot of 4 bytes
		f.padding *= 4
		f.samples, f.length = 384, 12*f.bitrate/f.rate*4+f.padding
	case f.layer == 3 && f.version != 1:
		f.samples, f.length = 576, 72*f.bitrate/f.rate+f.padding
	default:
		f.samples, f.length = 1152, 144*f.bitrate/f.rate+f.padding
	}
	return f, true
}

const (
	walkLimit   = 512 << 10 // bytes up to which a file is measured frame by frame
	probeWindow = 16 << 10  // bytes searched for a frame in a larger file
)

// mpegDuration measures MPEG audio in seconds: by its Xing, Info or VBRI header, else frame by frame if it is
// small, else by its bitrate if that is the same in five places. 0 = unknown, because a guess would not bound the
// bill.
func mpegDuration(r io.ReaderAt, size int64) float64 {
	head := readAt(r, 0, 10, size)
	start := id3Length(head)
	window := readAt(r, start, headBytes, size)
	offset, first, ok := findFrame(window)
	if !ok {
		return 0
	}
	start += int64(offset)
	if frames := headerFrames(window[offset:], first); frames > 0 {
		return float64(frames) * float64(first.samples) / float64(first.rate)
	}
	end := size
	if tag := readAt(r, size-128, 3, size); bytes.Equal(tag, []byte("TAG")) {
		end -= 128
	}
	if end-start <= walkLimit {
		return walkFrames(readAt(r, start, int(end-start), size))
	}
	for i := int64(1); i < 5; i++ {
		_, f, ok := findFrame(readAt(r, start+(end-start)*i/5, probeWindow, size))
		if !ok || !f.sameKind(first) || f.bitrate != first.bitrate {
			return 0
		}
	}
	// The shortest frame of this bitrate gives the longest duration, which holds for encoders with and without
	// padding.
	shortest := first.length - first.padding
	return float64(end-start) / float64(shortest) * float64(first.samples) / float64(first.rate)
}

// findFrame finds the first place with two consecutive frames of the same kind.
func findFrame(b []byte) (offset int, f mpegFrame, ok bool) {
	for i := range b {
		f, ok := mpegAt(b[i:])
		if ok && i+f.length < len(b) && consecutive(b[i:], f, 0) {
			return i, f, true
		}
	}
	return 0, mpegFrame{}, false
}

// headerFrames reads the number of frames that the encoder wrote into the first frame (Xing, Info or VBRI); 0 = it
// wrote none.
func headerFrames(b []byte, f mpegFrame) uint32 {
	side := 17
	switch {
	case f.version == 1 && f.channels == 2:
		side = 32
	case f.version != 1 && f.channels == 1:
		side = 9
	}
	if at := 4 + side; len(b) >= at+12 {
		name := string(b[at : at+4])
		if (name == "Xing" || name == "Info") && b[at+7]&1 != 0 {
			return binary.BigEndian.Uint32(b[at+8:])
		}
	}
	if len(b) >= 36+18 && string(b[36:40]) == "VBRI" {
		return binary.BigEndian.Uint32(b[36+14:])
	}
	return 0
}

// walkFrames sums the durations of all frames.
func walkFrames(b []byte) float64 {
	seconds := 0.0
	for len(b) >= 4 {
		f, ok := mpegAt(b)
		if !ok {
			b = b[1:]
			continue
		}
		seconds += float64(f.samples) / float64(f.rate)
		b = b[min(f.length, len(b)):]
	}
	return seconds
}

// id3Length is the length of an ID3v2 tag at the start, 0 if there is none.
func id3Length(b []byte) int64 {
	if len(b) < 10 || !bytes.HasPrefix(b, []byte("ID3")) {
		return 0
	}
	n := int64(10)
	for i, shift := 6, 21; i < 10; i, shift = i+1, shift-7 {
		n += int64(b[i]&0x7f) << shift
	}
	if b[5]&0x10 != 0 {
		n += 10 // footer
	}
	return n
}

// consecutive reports whether another frame of the same kind follows the first, or the file ends with it.
func consecutive(b []byte, first mpegFrame, size int64) bool {
	if int64(first.length) == size {
		return true
	}
	if first.length >= len(b) {
		return false
	}
	next, ok := mpegAt(b[first.length:])
	return ok && next.sameKind(first)
}

// headBytes is how much of the start of a file is examined.
const headBytes = 64 << 10

// readAt returns the n bytes at off, fewer at the end of the file or after a read error.
func readAt(r io.ReaderAt, off int64, n int, size int64) []byte {
	if off < 0 || off >= size || n <= 0 {
		return nil
	}
	b := make([]byte, min(int64(n), size-off))
	got, _ := r.ReadAt(b, off)
	return b[:got]
}
