package intake

import (
	"bytes"
	"io"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// detectFormat returns the media type of a file by its content, never by its name. The error is a refusal.
func detectFormat(r io.ReaderAt, size int64) (format string, err error) {
	head := make([]byte, min(size, headBytes))
	n, err := r.ReadAt(head, 0)
	if err != nil && n < len(head) {
		return "", refusal(fileFailure(err))
	}
	if format := audioFormat(head, size); format != "" {
		return format, nil
	}
	m := mimetype.Detect(head)
	kind, _, _ := strings.Cut(m.String(), ";")
	switch {
	case kind == "audio/midi":
		return "", refusal("is MIDI, which contains notes but no audio")
	case strings.HasPrefix(kind, "audio/"), strings.HasPrefix(kind, "video/"), kind == "application/ogg":
		return kind, nil
	case kind == "application/octet-stream":
		return "", refusal("is neither audio nor video: unknown file format")
	}
	return "", refusal("is neither audio nor video: its content is " + kind)
}

// audioFormat detects what package mimetype does not detect reliably: MPEG audio, AAC and FLAC with or without a
// tag in front, MPEG transport streams, CAF, AIFF and WAV of more than 4 GiB. "" = none of them.
func audioFormat(head []byte, size int64) string {
	body := head[min(int64(len(head)), id3Length(head)):]
	switch {
	case len(head) >= 12 && bytes.HasPrefix(head, []byte("FORM")) && (string(head[8:12]) == "AIFF" || string(head[8:12]) == "AIFC"):
		return "audio/aiff"
	case len(head) >= 12 && (bytes.HasPrefix(head, []byte("RF64")) || bytes.HasPrefix(head, []byte("BW64"))) && string(head[8:12]) == "WAVE":
		return "audio/wav"
	case bytes.HasPrefix(head, []byte("caff")):
		return "audio/x-caf"
	case len(head) > 376 && head[0] == 0x47 && head[188] == 0x47 && head[376] == 0x47:
		return "video/mp2t"
	case bytes.HasPrefix(body, []byte("fLaC")):
		return "audio/flac"
	case adtsAt(body, size):
		return "audio/aac"
	}
	if f, ok := mpegAt(body); ok && consecutive(body, f, size) {
		return "audio/mpeg"
	}
	return ""
}

// adtsAt reports whether b starts with two ADTS frames, or with one that is the whole file.
func adtsAt(b []byte, size int64) bool {
	n := adtsLength(b)
	if n == 0 {
		return false
	}
	return int64(n) == size || (n < len(b) && adtsLength(b[n:]) > 0)
}

// adtsLength is the length of the ADTS frame at the start of b, 0 if there is none.
func adtsLength(b []byte) int {
	if len(b) < 7 || b[0] != 0xff || b[1]&0xf6 != 0xf0 || b[2]>>2&0xf > 12 {
		return 0
	}
	n := int(b[3]&3)<<11 | int(b[4])<<3 | int(b[5]>>5)
	if n < 7 {
		return 0
	}
	return n
}
