package intake

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// wavOf is PCM, 8 kHz, 8 bit, mono, whose header claims a length of data.
func wavOf(data []byte, claimed uint32) []byte {
	var b bytes.Buffer
	b.WriteString("RIFF")
	le(&b, uint32(36+len(data)))
	b.WriteString("WAVEfmt ")
	le(&b, uint32(16), uint16(1), uint16(1), uint32(8000), uint32(8000), uint16(1), uint16(8))
	b.WriteString("data")
	le(&b, claimed)
	b.Write(data)
	return b.Bytes()
}

func le(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		_ = binary.Write(b, binary.LittleEndian, v) // a Buffer cannot fail
	}
}

// flac is a FLAC file with n frames of 4,096 samples, whose header claims a number of samples.
func flac(rate uint32, claimed uint64, n int) []byte {
	b := []byte("fLaC\x80\x00\x00\x22")
	info := make([]byte, 34)
	info[10], info[11], info[12] = byte(rate>>12), byte(rate>>4), byte(rate<<4)
	info[13] = byte(claimed >> 32 & 0xf)
	binary.BigEndian.PutUint32(info[14:], uint32(claimed))
	b = append(b, info...)
	for i := range n {
		head := utf8.AppendRune([]byte{0xff, 0xf8, 0xc0, 0x08}, rune(i))
		b = append(append(append(b, head...), crc8(head)), make([]byte, 9)...)
	}
	return b
}

// mp3 is n frames of MPEG 1 layer III, 44.1 kHz, at a bitrate by index
// (9 = 128 kbit/s, 417 bytes a frame).
func mp3(n int, bitrates ...byte) []byte {
	var b []byte
	for i := range n {
		frame := []byte{0xff, 0xfb, bitrates[i%len(bitrates)] << 4, 0x64}
		f, _ := mpegAt(frame)
		b = append(b, append(frame, make([]byte, f.length-4)...)...)
	}
	return b
}

// adts is n frames of AAC.
func adts(n int) []byte {
	var b []byte
	for range n {
		const length = 200
		b = append(b, 0xff, 0xf1, 0x50, 0x80|length>>11, length>>3&0xff, length&7<<5|0x1f, 0xfc)
		b = append(b, make([]byte, length-7)...)
	}
	return b
}

func oggPageOf(flags byte, granule uint64, serial uint32, body []byte) []byte {
	var b bytes.Buffer
	b.WriteString("OggS")
	b.Write([]byte{0, flags})
	le(&b, granule, serial, uint32(0), uint32(0))
	b.Write([]byte{1, byte(len(body))})
	b.Write(body)
	return b.Bytes()
}

// opus is an OGG file with n packets of 20 ms, whose last page claims a position.
func opus(claimed uint64, n int) []byte {
	head := append([]byte("OpusHead\x01\x01"), 0x38, 0x01, 0x80, 0xbb, 0, 0, 0, 0, 0)
	b := append(oggPageOf(2, 0, 7, head), oggPageOf(0, 0, 7, []byte("OpusTags"))...)
	for range n {
		b = append(b, oggPageOf(0, claimed, 7, append([]byte{0x78}, make([]byte, 60)...))...)
	}
	return b
}

// vorbis is an OGG file at 22,050 Hz with n packets of at most 1,024 samples each.
func vorbis(claimed uint64, n int) []byte {
	head := binary.LittleEndian.AppendUint32([]byte("\x01vorbis\x00\x00\x00\x00\x01"), 22050)
	head = append(append(head, make([]byte, 12)...), 0xb8, 1)
	b := append(oggPageOf(2, 0, 1, head), oggPageOf(0, 0, 1, []byte("\x03vorbis"))...)
	b = append(b, oggPageOf(0, 0, 1, []byte("\x05vorbis"))...)
	for range n {
		b = append(b, oggPageOf(0, claimed, 1, make([]byte, 40))...)
	}
	return b
}

func box(name string, body ...[]byte) []byte {
	all := bytes.Join(body, nil)
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(all)))
	return append(append(b, name...), all...)
}

// words are big-endian numbers of 32 bits.
func words(values ...uint32) (b []byte) {
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

// mp4 is an M4A file of AAC at 44.1 kHz with n samples, whose headers claim a number of seconds.
func mp4(claimed uint32, n int, more ...[]byte) []byte {
	return append(append(box("ftyp", []byte("M4A \x00\x00\x00\x00M4A isom")), box("mdat", make([]byte, 64))...),
		box("moov", box("mvhd", words(0, 0, 0, 1000, claimed*1000), make([]byte, 80)), aacTrack(claimed, n), bytes.Join(more, nil))...)
}

func aacTrack(claimed uint32, n int) []byte {
	esds := box("esds", words(0), []byte("\x03\x80\x80\x80\x22\x00\x01\x00\x04\x80\x80\x80\x14\x40\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x80\x80\x80\x02\x12\x10"))
	entry := box("mp4a", make([]byte, 28), esds)
	return box("trak", box("tkhd", words(0, 0, 0, 1, 0, 0)), box("mdia",
		box("mdhd", words(0, 0, 0, 44100, claimed*44100, 0)), box("hdlr", words(0, 0), []byte("soun"), make([]byte, 12)),
		box("minf", box("stbl", box("stsd", words(0, 1), entry), box("stsz", words(0, 100, uint32(n))),
			box("stts", words(0, 1, uint32(n), claimed*44100/uint32(max(n, 1))))))))
}

// put writes a file below dir and returns its path.
func put(t testing.TB, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}
