package intake

import (
	"bytes"
	"io"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// sniffBytes is how much of a file's start is looked at.
const sniffBytes = 64 << 10

// sniff tells the format of a file by its content, never by its name. The
// error is a refusal.
func sniff(r io.ReaderAt, size int64) (format string, err error) {
	head := make([]byte, min(size, sniffBytes))
	n, err := r.ReadAt(head, 0)
	if err != nil && n < len(head) {
		return "", refusal(openFailure(err))
	}
	head = head[:n]
	if known := ownMagic(head, size); known != "" {
		return known, nil
	}
	m := mimetype.Detect(head)
	kind, _, _ := strings.Cut(m.String(), ";")
	switch {
	case kind == "audio/midi":
		return "", refusal("holds notes (MIDI), no sound")
	case strings.HasPrefix(kind, "audio/"), strings.HasPrefix(kind, "video/"), kind == "application/ogg":
		return kind, nil
	case kind == "application/octet-stream":
		return "", refusal("is neither audio nor video by its content")
	}
	return "", refusal("is neither audio nor video: its content is " + kind)
}

// ownMagic knows what mimetype does not, or not well enough: MPEG audio and
// ADTS without a tag in front, MPEG transport streams, CAF.
func ownMagic(head []byte, size int64) string {
	body := head[min(int64(len(head)), id3Length(head)):]
	switch {
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

// consecutive reports whether another frame of the same kind follows the
// first, or the file ends with it.
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

// adtsAt reports whether two ADTS frames, or one that is the whole file, begin here.
func adtsAt(b []byte, size int64) bool {
	n := adtsLength(b)
	if n == 0 {
		return false
	}
	return int64(n) == size || (n < len(b) && adtsLength(b[n:]) > 0)
}

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
