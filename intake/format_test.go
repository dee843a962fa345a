package intake

import (
	"bufio"
	"bytes"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/testaudio"
	"reprise/tasks"
)

// id3 is an ID3 tag of 138 bytes.
var id3 = append([]byte("ID3\x03\x00\x00\x00\x00\x01\x00"), make([]byte, 128)...)

const (
	unknown  = -1
	mp3Frame = 1152.0 / 44100
	aacFrame = 1024.0 / 44100
)

func lengthOf(b []byte, format string) audioLength {
	r := bytes.NewReader(b)
	return measure(r, bufio.NewReaderSize(r, readBuffer), int64(len(b)), format)
}

// info is an MP3 frame in which the encoder states a number of frames.
func info(name string, frames uint32) []byte {
	b := mp3(1, 9)
	copy(b[36:], append([]byte(name+"\x00\x00\x00\x01"), words(frames)...))
	return b
}

func aiff(kind, codec string, data int) []byte {
	comm := append([]byte("\x00\x01\x00\x00\x56\x22\x00\x10\x40\x0e\xac\x44\x00\x00\x00\x00\x00\x00"), codec...) // 0.5 s stated, 44.1 kHz, 16 bits
	chunks := slices.Concat([]byte(kind), []byte("COMM"), words(uint32(len(comm))), comm, []byte("SSND"), words(uint32(data+8)), make([]byte, data+8))
	return slices.Concat([]byte("FORM"), words(uint32(len(chunks))), chunks)
}

func TestAudioLength_IsCountedFromTheAudioNotFromHeaders(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content []byte
		format  string
		seconds float64
	}{
		"WAV":                                    {testaudio.WAV(2500*time.Millisecond, "1"), "audio/wav", 2.5},
		"WAV of a streaming writer":              {wavOf(make([]byte, 4000), 0xffffffff), "audio/wav", 0.5},
		"WAV that states no data":                {wavOf(make([]byte, 4000), 0), "audio/wav", 0.5},
		"WAV of a killed writer":                 {wavOf(make([]byte, 4000), 80000), "audio/wav", 0.5},
		"WAV with a false byte rate":             {bytes.Replace(wavOf(make([]byte, 4000), 4000), []byte("\x40\x1f\x00\x00\x40\x1f\x00\x00"), []byte("\x40\x1f\x00\x00\xff\xff\xff\x00"), 1), "audio/wav", 0.5},
		"WAV with a false frame size":            {bytes.Replace(wavOf(make([]byte, 4000), 4000), []byte("\x01\x00\x08\x00"), []byte("\xff\x00\x08\x00"), 1), "audio/wav", unknown},
		"WAV with two data chunks":               {append(wavOf(make([]byte, 4000), 4000), wavOf(make([]byte, 4000), 4000)[36:]...), "audio/wav", 1},
		"WAV with another WAV behind it":         {append(wavOf(make([]byte, 4000), 4000), wavOf(make([]byte, 4000), 4000)...), "audio/wav", unknown},
		"WAV with compressed data":               {bytes.Replace(wavOf(make([]byte, 4000), 4000), []byte("\x01\x00\x01\x00"), []byte("\x02\x00\x01\x00"), 1), "audio/wav", unknown},
		"FLAC":                                   {flac(44100, 4096*9, 9), "audio/flac", 9 * 4096.0 / 44100},
		"FLAC that states no length":             {flac(44100, 0, 300), "audio/flac", 300 * 4096.0 / 44100},
		"FLAC that states one sample":            {flac(44100, 1, 300), "audio/flac", 300 * 4096.0 / 44100},
		"FLAC behind an ID3 tag":                 {append(bytes.Clone(id3), flac(48000, 1, 3)...), "audio/flac", 3 * 4096.0 / 48000},
		"FLAC with another FLAC behind it":       {append(flac(48000, 1, 3), flac(48000, 1, 3)...), "audio/flac", 6 * 4096.0 / 48000},
		"MP3 of bare frames":                     {mp3(10, 9), "audio/mpeg", 10 * mp3Frame},
		"MP3 with ID3":                           {append(bytes.Clone(id3), mp3(10, 9)...), "audio/mpeg", 10 * mp3Frame},
		"MP3 of constant bitrate":                {mp3(3000, 9), "audio/mpeg", 3000 * mp3Frame},
		"MP3 of variable bitrate":                {mp3(3000, 9, 12, 5), "audio/mpeg", 3000 * mp3Frame},
		"MP3 whose Info states one frame":        {append(info("Info", 1), mp3(20000, 9)...), "audio/mpeg", 20000 * mp3Frame},
		"MP3 whose Xing states many frames":      {append(info("Xing", 1e6), mp3(20, 9)...), "audio/mpeg", 20 * mp3Frame},
		"MP3 whose every frame is an Info":       {bytes.Repeat(info("Info", 1), 100), "audio/mpeg", 99 * mp3Frame},
		"MP3 with another MP3 behind it":         {slices.Concat(mp3(30, 9), id3, mp3(30, 9)), "audio/mpeg", 60 * mp3Frame},
		"MP3 with garbage between its frames":    {slices.Concat(mp3(30, 9), make([]byte, 70_000), mp3(30, 9)), "audio/mpeg", 60 * mp3Frame},
		"MP3 cut off":                            {mp3(30, 9)[:29*417+200], "audio/mpeg", 30 * mp3Frame},
		"AAC in ADTS frames":                     {adts(500), "audio/aac", 500 * aacFrame},
		"Opus":                                   {opus(48000*4, 200), "audio/ogg", 4},
		"Opus whose last page states one packet": {opus(960, 200), "audio/ogg", 4},
		"Vorbis whose last page states nothing":  {vorbis(0, 200), "audio/ogg", 200 * 1024.0 / 22050},
		"Opus after Vorbis in a chained file":    {append(vorbis(100, 200), opus(48000, 50)...), "audio/ogg", 200*1024.0/22050 + 1},
		"OGG without its first page":             {oggPageOf(0, 48000, 9, []byte("x")), "application/ogg", unknown},
		"OGG with an unknown codec":              {oggPageOf(2, 0, 9, []byte("Speex   ")), "application/ogg", unknown},
		"MP4":                                    {mp4(60, 2584), "audio/x-m4a", 60},
		"MP4 that states one second":             {mp4(1, 20000), "audio/x-m4a", 20000 * aacFrame},
		"MP4 that states an hour":                {mp4(3600, 20), "audio/x-m4a", 3600},
		"MP4 with two audio tracks":              {mp4(1, 1000, aacTrack(1, 2000)), "audio/x-m4a", 2000 * aacFrame},
		"fragmented MP4":                         {append(mp4(0, 0), box("moof", box("traf", box("tfhd", words(0, 1)), box("trun", words(1, 5000))))...), "audio/x-m4a", 5000 * aacFrame},
		"MP4 of an unknown codec":                {bytes.Replace(mp4(1, 20), []byte("mp4a"), []byte("Opus"), 1), "audio/x-m4a", unknown},
		"MP4 cut off":                            {mp4(9, 20)[:60], "audio/x-m4a", unknown},
		"AIFF":                                   {aiff("AIFF", "", 88200), "audio/aiff", 1},
		"AIFF-C":                                 {aiff("AIFC", "fl32\x00\x00", 176400), "audio/aiff", 1},
		"AIFF-C with compressed data":            {aiff("AIFC", "ima4\x00\x00", 88200), "audio/aiff", unknown},
		"CAF":                                    {append([]byte("caff\x00\x01\x00\x00data"), make([]byte, 60)...), "audio/x-caf", unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			format, err := detectFormat(bytes.NewReader(c.content), int64(len(c.content)))
			require.NoError(t, err)
			require.Equal(t, c.format, format)
			length := lengthOf(c.content, c.format)
			require.Equal(t, c.seconds != unknown, length.known)
			require.InDelta(t, max(0, c.seconds), length.seconds, 0.02)
		})
	}
}

func TestFileWithoutAudio_IsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"empty.wav":    wavOf(nil, 0),
		"listed.wav":   append(wavOf(nil, 0), "LIST\x04\x00\x00\x00INFO"...),
		"no-data.wav":  wavOf(nil, 0)[:36],
		"tag.mp3":      id3[:10],
		"long-tag.mp3": id3,
		"text.mp3":     append(bytes.Clone(id3), "no audio, only text"...),
		"info.mp3":     append(bytes.Clone(id3), info("Info", 20000)...),
		"empty.flac":   flac(44100, 44100*90, 0),
		"empty.opus":   opus(48000, 0),
		"empty.ogg":    vorbis(48000, 0),
		"empty.m4a":    mp4(60, 0),
		"silent.mp4":   bytes.ReplaceAll(mp4(60, 2584), []byte("soun"), []byte("vide")),
		"empty.aiff":   aiff("AIFF", "", 0),
		"empty.caf":    []byte("caff\x00\x01\x00\x00desc\x00\x00\x00\x00"),
		"empty.mka":    []byte("\x1a\x45\xdf\xa3\x8b\x42\x82\x88matroska"),
		"empty.amr":    []byte("#!AMR\n"),
		"empty.au":     append([]byte(".snd"), words(24, 0, 1, 8000, 1)...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := readFile(t.Context(), tasks.Recognize, put(t, dir, name, content))
			require.ErrorContains(t, err, "contains no audio: it starts as ")
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
	for _, seed := range [][]byte{testaudio.WAV(100*time.Millisecond, "1"), flac(44100, 10, 3), mp3(5, 9), opus(1000, 3), vorbis(9, 2), mp4(10, 20), aiff("AIFF", "", 9), adts(2), []byte("FORM\x00\x00\x00\x2eAIFFCOMM\x00\x00\x00\x12")} {
		f.Add(seed)
	}
	formats := append(slices.Collect(maps.Keys(audioMarks)), "audio/wav", "audio/flac", "audio/aiff", "audio/mpeg", "audio/aac", "audio/ogg", "video/mp4")
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = detectFormat(bytes.NewReader(b), int64(len(b)))
		for _, format := range formats {
			if l := lengthOf(b, format); l.seconds < 0 || l.seconds > tasks.MaxSeconds || (!l.known && l.seconds != 0) {
				t.Fatalf("%s: %+v", format, l)
			}
		}
	})
}
