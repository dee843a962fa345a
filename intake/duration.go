package intake

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strings"

	"reprise/tasks"
)

// audioLength is the length of a file's audio as counted from the audio itself. It bounds what AudD may bill for an
// enterprise call, so the lengths that headers state are not trusted.
type audioLength struct {
	seconds float64
	known   bool // false: the format cannot be counted without decoding; seconds is 0
}

func counted(seconds float64) audioLength {
	if math.IsNaN(seconds) || seconds < 0 || seconds > tasks.MaxSeconds {
		return audioLength{}
	}
	return audioLength{seconds, true}
}

// measure counts the audio of a file. rest reads the file from its start; measure reads none, a part or all of it.
// Read errors look like the end of the file, and the caller finds them when it reads on.
func measure(r io.ReaderAt, rest *bufio.Reader, size int64, format string) audioLength {
	switch format {
	case "audio/wav":
		return wavLength(r, size)
	case "audio/aiff":
		return aiffLength(r, size)
	case "audio/flac":
		return flacLength(rest)
	case "audio/mpeg":
		return framesLength(rest, mpegFrames())
	case "audio/aac":
		return framesLength(rest, adtsFrameAt)
	case "audio/ogg", "video/ogg", "application/ogg":
		return oggLength(rest)
	case "audio/mp4", "audio/x-m4a", "video/mp4", "video/x-m4v", "video/quicktime", "video/3gpp", "video/3gpp2", "video/mj2":
		return mp4Length(r, size)
	}
	if mark, known := audioMarks[format]; known && !follows(rest, mark.before, mark.header) {
		return counted(0)
	}
	return audioLength{}
}

// audioMarks says what stands before the audio in formats that are not counted: a mark and a number of bytes more.
var audioMarks = map[string]struct {
	before []byte
	header int
}{
	"audio/amr":       {[]byte("#!AMR"), 4},
	"audio/basic":     {[]byte(".snd"), 20},
	"audio/x-caf":     {[]byte("data"), 12},
	"video/matroska":  {[]byte("\x1f\x43\xb6\x75"), 8}, // Cluster
	"video/webm":      {[]byte("\x1f\x43\xb6\x75"), 8},
	"video/x-ms-asf":  {[]byte("\x36\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c"), 34}, // Data Object
	"video/x-msvideo": {[]byte("movi"), 8},
}

// follows reports whether more than a number of bytes stand behind the first mark.
func follows(r *bufio.Reader, mark []byte, header int) bool {
	for {
		b, err := r.Peek(maxFrame)
		if i := bytes.Index(b, mark); i >= 0 {
			_, _ = r.Discard(i + len(mark))
			b, _ = r.Peek(header + 1)
			return len(b) > header
		}
		if err != nil {
			return false
		}
		_, _ = r.Discard(len(b) - len(mark) + 1)
	}
}

// iff is a RIFF or IFF file: a head of 12 bytes, then chunks.
type iff struct {
	io.ReaderAt
	size  int64
	order binary.ByteOrder
	data  string // the name of the chunk that holds the audio
}

// chunks calls visit for each chunk from off on. It reports whether the chunks fill the file and no other file was
// appended. A writer that streams leaves 0 or the maximum as the length of the audio, and a writer that was killed
// leaves more than the file has: such a chunk ends with the file.
func (f iff) chunks(off int64, visit func(id string, body, length int64)) (whole bool) {
	chunksFollow := false
	for n := 0; off+8 <= f.size; n++ {
		head := readAt(f, off, 8, f.size)
		if len(head) < 8 || n == 10_000 {
			return false
		}
		id, body, length := string(head[:4]), off+8, int64(f.order.Uint32(head[4:]))
		if id == "RIFF" || id == "FORM" || strings.ContainsFunc(id, func(c rune) bool { return c < ' ' || c > '~' }) {
			return false
		}
		if length == 0 && id == f.data && !chunksFollow {
			chunksFollow = iff{f, f.size, f.order, ""}.chunks(body, func(string, int64, int64) {})
			if !chunksFollow {
				length = math.MaxUint32
			}
		}
		length = min(length, f.size-body)
		visit(id, body, length)
		off = body + length + length&1
	}
	return off >= f.size-1 // the padding of the last chunk may be missing
}

// Formats of WAV data whose bytes a second are fixed: PCM, float, A-law, µ-law (RFC 2361).
var wavFixed = []uint16{1, 3, 6, 7}

func wavLength(r io.ReaderAt, size int64) audioLength {
	var perSecond, data int64
	fixed := true
	whole := iff{r, size, binary.LittleEndian, "data"}.chunks(12, func(id string, body, length int64) {
		switch id {
		case "fmt ":
			b := readAt(r, body, 26, body+length)
			if len(b) < 16 {
				fixed = false
				return
			}
			codec, channels, bits := binary.LittleEndian.Uint16(b), int64(binary.LittleEndian.Uint16(b[2:])), int64(binary.LittleEndian.Uint16(b[14:]))
			if codec == 0xfffe && len(b) == 26 { // extensible: the format stands at the start of a GUID
				codec = binary.LittleEndian.Uint16(b[24:])
			}
			frame := int64(binary.LittleEndian.Uint16(b[12:]))
			fixed = fixed && perSecond == 0 && slices.Contains(wavFixed, codec) && frame == channels*((bits+7)/8)
			perSecond = int64(binary.LittleEndian.Uint32(b[4:])) * frame
		case "data":
			data += length
		}
	})
	return pcmLength(data, float64(perSecond), fixed && whole)
}

// pcmLength is the length of data at a fixed rate in bytes a second.
func pcmLength(data int64, perSecond float64, fixed bool) audioLength {
	switch {
	case data == 0:
		return counted(0)
	case !fixed || !(perSecond > 0):
		return audioLength{}
	}
	return counted(float64(data) / perSecond)
}

// Bytes of a sample in the AIFF-C formats that are not compressed; 0 = as many as the header's bits need.
var aiffFixed = map[string]float64{
	"NONE": 0, "twos": 0, "sowt": 0, "in24": 3, "42ni": 3, "in32": 4, "23ni": 4, "fl32": 4, "FL32": 4, "fl64": 8, "FL64": 8,
	"alaw": 1, "ALAW": 1, "ulaw": 1, "ULAW": 1,
}

func aiffLength(r io.ReaderAt, size int64) audioLength {
	var perSecond float64
	var data int64
	fixed := true
	whole := iff{r, size, binary.BigEndian, "SSND"}.chunks(12, func(id string, body, length int64) {
		switch id {
		case "COMM":
			b := readAt(r, body, 22, body+length)
			if len(b) < 18 {
				fixed = false
				return
			}
			width := math.Ceil(float64(binary.BigEndian.Uint16(b[6:])) / 8)
			if len(b) == 22 { // AIFF-C
				special, known := aiffFixed[string(b[18:])]
				fixed = fixed && known
				if special > 0 {
					width = special
				}
			}
			// The sample rate is an 80-bit float: exponent, then mantissa with its leading one.
			exponent := int(binary.BigEndian.Uint16(b[8:])&0x7fff) - 16383 - 63
			fixed = fixed && perSecond == 0
			perSecond = math.Ldexp(float64(binary.BigEndian.Uint64(b[10:])), exponent) * width * float64(binary.BigEndian.Uint16(b))
		case "SSND":
			data += max(0, length-8) // offset and block size come first
		}
	})
	return pcmLength(data, perSecond, fixed && whole)
}
