package intake

import (
	"bytes"
	"encoding/binary"
	"reprise/internal/testaudio"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFormatAndLengthComeFromTheContent(t *testing.T) {
	t.Parallel()
	id3 := append([]byte("ID3\x03\x00\x00\x00\x00\x01\x00"), make([]byte, 128)...)
	xing := mp3(40, 9)
	copy(xing[36:], "Xing\x00\x00\x00\x01\x00\x00\x03\xe8") // 1,000 frames
	aiff := []byte("FORM\x00\x00\x00\x2eAIFFCOMM\x00\x00\x00\x12\x00\x01\x00\x00\x56\x22\x00\x10\x40\x0e\xac\x44\x00\x00\x00\x00\x00\x00SSND\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00")
	vorbis := append([]byte("\x01vorbis\x00\x00\x00\x00\x01"), binary.LittleEndian.AppendUint32(nil, 22050)...)
	frame := 1152.0 / 44100
	for name, c := range map[string]struct {
		content []byte
		format  string
		seconds float64
	}{
		"WAV":                            {testaudio.WAV(2500*time.Millisecond, "1"), "audio/wav", 2.5},
		"WAV of a streaming writer":      {wavOf(make([]byte, 4000), 0xffffffff), "audio/wav", 0.5},
		"WAV of a killed writer":         {wavOf(make([]byte, 4000), 80000), "audio/wav", 0.5},
		"FLAC":                           {flac(44100, 44100*90), "audio/flac", 90},
		"FLAC of unknown length":         {flac(44100, 0), "audio/flac", 0},
		"FLAC behind an ID3 tag":         {append(bytes.Clone(id3), flac(48000, 48000*3)...), "audio/flac", 3},
		"MP3 of bare frames":             {mp3(10, 9), "audio/mpeg", 10 * frame},
		"MP3 with ID3":                   {append(bytes.Clone(id3), mp3(10, 9)...), "audio/mpeg", 10 * frame},
		"MP3 of variable bitrate, small": {mp3(30, 9, 12, 5), "audio/mpeg", 30 * frame},
		"MP3 of constant bitrate, large": {mp3(3000, 9), "audio/mpeg", 3000 * frame},
		"MP3 of variable bitrate, large": {append(mp3(1500, 9), mp3(1500, 12)...), "audio/mpeg", 0},
		"MP3 with a Xing header":         {xing, "audio/mpeg", 1000 * frame},
		"AAC in ADTS frames":             {adts(5), "audio/aac", 0},
		"Opus":                           {opus(48000*7 + 312), "audio/ogg", 7},
		"Vorbis":                         {append(oggPageOf(2, 0, 1, vorbis), oggPageOf(4, 22050*4, 1, nil)...), "audio/ogg", 4},
		"chained OGG":                    {append(opus(48000), oggPageOf(2, 0, 9, []byte("OpusHead"))...), "audio/ogg", 0},
		"MP4":                            {mp4(1000, 61500), "audio/x-m4a", 61.5},
		"fragmented MP4":                 {mp4(1000, 0, box("mvex", box("mehd", make([]byte, 4), binary.BigEndian.AppendUint32(nil, 9000)))), "audio/x-m4a", 9},
		"MP4 without length":             {mp4(1000, 0), "audio/x-m4a", 0},
		"MP4 cut off":                    {mp4(1000, 9000)[:60], "audio/x-m4a", 0},
		"AIFF":                           {aiff, "audio/aiff", 0.5},
		"CAF":                            {append([]byte("caff\x00\x01\x00\x00"), make([]byte, 60)...), "audio/x-caf", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, size := bytes.NewReader(c.content), int64(len(c.content))
			format, err := detectFormat(r, size)
			require.NoError(t, err)
			require.Equal(t, c.format, format)
			require.InDelta(t, c.seconds, duration(r, size, format), 0.02)
		})
	}
}

func TestFileThatIsNotAudioIsRefusedByItsContent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ content, want string }{
		"text":         {"hello, this is a text\n", "is neither audio nor video: its content is text/plain"},
		"PNG":          {"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR", "is neither audio nor video: its content is image/png"},
		"random bytes": {"\x01\x02\x03\x04\x05\x06\xff\xfe\xfd", "is neither audio nor video"},
		"playlist":     {"#EXTM3U\n#EXTINF:1,x\nx.mp3\n", "is neither audio nor video"},
		"MIDI":         {"MThd\x00\x00\x00\x06\x00\x00\x00\x01", "is MIDI, which contains notes but no audio"},
		"one byte":     {"\xff", "is neither audio nor video"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := detectFormat(bytes.NewReader([]byte(c.content)), int64(len(c.content)))
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A file may come from anyone: whatever its headers claim, reading them ends and
// does not panic.
func FuzzDuration(f *testing.F) {
	for _, seed := range [][]byte{testaudio.WAV(100*time.Millisecond, "1"), flac(44100, 10), mp3(5, 9), opus(1000), mp4(10, 20), adts(2), []byte("FORM\x00\x00\x00\x2eAIFFCOMM\x00\x00\x00\x12")} {
		f.Add(seed)
	}
	formats := []string{"audio/wav", "audio/flac", "audio/aiff", "audio/mpeg", "audio/ogg", "video/mp4"}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = detectFormat(bytes.NewReader(b), int64(len(b)))
		for _, format := range formats {
			if s := duration(bytes.NewReader(b), int64(len(b)), format); s < 0 || s > maxSeconds {
				t.Fatalf("%s: %f seconds", format, s)
			}
		}
	})
}
