package intake

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

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

func be(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		_ = binary.Write(b, binary.BigEndian, v)
	}
}

// flac is the header of a FLAC file.
func flac(rate uint32, samples uint64) []byte {
	b := []byte("fLaC\x80\x00\x00\x22")
	info := make([]byte, 34)
	info[10], info[11], info[12] = byte(rate>>12), byte(rate>>4), byte(rate<<4)
	info[13] = byte(samples >> 32 & 0xf)
	binary.BigEndian.PutUint32(info[14:], uint32(samples))
	return append(b, info...)
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

// opus is an OGG file whose last page has the granule position.
func opus(granule uint64) []byte {
	head := append([]byte("OpusHead\x01\x01"), 0x38, 0x01, 0x80, 0xbb, 0, 0, 0, 0, 0)
	return append(oggPageOf(2, 0, 7, head), oggPageOf(4, granule, 7, make([]byte, 100))...)
}

func box(name string, body ...[]byte) []byte {
	all := bytes.Join(body, nil)
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(all)))
	return append(append(b, name...), all...)
}

// mp4 is an M4A file of length/scale seconds.
func mp4(scale, length uint32, more ...[]byte) []byte {
	var mvhd bytes.Buffer
	be(&mvhd, uint32(0), uint32(0), uint32(0), scale, length)
	mvhd.Write(make([]byte, 80))
	moov := append([][]byte{box("mvhd", mvhd.Bytes())}, more...)
	return append(append(box("ftyp", []byte("M4A \x00\x00\x00\x00M4A isom")), box("mdat", make([]byte, 64))...), box("moov", moov...)...)
}

// put writes a file below dir and returns its path.
func put(t testing.TB, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}
