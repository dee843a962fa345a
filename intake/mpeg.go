package intake

import (
	"bytes"
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
	padding := int(b[2] >> 1 & 1)
	switch {
	case f.layer == 1: // a slot has 4 bytes
		f.samples, f.length = 384, (12*f.bitrate/f.rate+padding)*4
	case f.layer == 3 && f.version != 1:
		f.samples, f.length = 576, 72*f.bitrate/f.rate+padding
	default:
		f.samples, f.length = 1152, 144*f.bitrate/f.rate+padding
	}
	return f, true
}

// mpegFrames returns the reader of MPEG frame headers for framesLength. The first frame counts nothing if it holds the
// encoder's notes (Xing, Info, VBRI), because decoders skip it.
func mpegFrames() func(b []byte) (length int, seconds float64) {
	first := true
	return func(b []byte) (int, float64) {
		f, ok := mpegAt(b)
		if !ok {
			return 0, 0
		}
		notes := first && f.notes(b)
		first = false
		if notes {
			return f.length, 0
		}
		return f.length, float64(f.samples) / float64(f.rate)
	}
}

// notes reports whether the frame at the start of b holds the encoder's notes instead of audio.
func (f mpegFrame) notes(b []byte) bool {
	side := 17
	switch {
	case f.version == 1 && f.channels == 2:
		side = 32
	case f.version != 1 && f.channels == 1:
		side = 9
	}
	b = b[min(4+side, len(b)):]
	return bytes.HasPrefix(b, []byte("Xing")) || bytes.HasPrefix(b, []byte("Info")) || bytes.HasPrefix(b[min(32-side, len(b)):], []byte("VBRI"))
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
