package intake

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Position is where in a manifest an input stands. The zero value is no
// manifest.
type Position struct {
	Manifest string // its name as the user wrote it
	// Row counts from 1, without the header of a CSV and without the empty
	// lines of a JSONL; 0 is the header or the file as a whole.
	Row int
	// Line counts from 1; a row of several lines has the number of its first.
	Line int
}

func (p Position) String() string {
	switch {
	case p.Manifest == "":
		return ""
	case p.Row == 0:
		return fmt.Sprintf("%s line %d", p.Manifest, p.Line)
	}
	return fmt.Sprintf("%s row %d (line %d)", p.Manifest, p.Row, p.Line)
}

// Manifest is a list of inputs with what is to be known of each. Rows that
// cannot be used are kept with their reason, so that a plan names them.
type Manifest struct {
	Name string
	rows []found
}

// maxManifestRow bounds a row; a CSV that is longer has lost a closing quote.
const maxManifestRow = 1 << 20

// ReadManifest reads a manifest in UTF-8: CSV (separated by commas, semicolons
// or tabs, named columns in the first line) or JSONL (one object a line), told
// apart by content. The columns are
//
//	audio_id     integer, 0 or more     file or url   the audio
//	external_id  text                   source        the account (uploads)
//	metadata     a JSON object          meta.NAME     one value of it
//
// Relative files are relative to dir. A row that cannot be used, or a header
// that makes all unusable, is not an error: the plan refuses it by row and
// line. An error means that r could not be read or ctx has ended.
func ReadManifest(ctx context.Context, r io.Reader, name, dir string) (*Manifest, error) {
	m := &manifestReader{
		lines: lines{r: bufio.NewReaderSize(&contextReader{ctx: ctx, r: r}, 64<<10)},
		out:   &Manifest{Name: name}, dir: dir,
	}
	if err := m.read(); err != nil {
		return nil, fmt.Errorf("read the manifest %s: %w", name, err)
	}
	return m.out, nil
}

// manifestReader holds what the two formats share.
type manifestReader struct {
	lines lines
	out   *Manifest
	dir   string
	row   int
}

func (m *manifestReader) read() error {
	head, err := m.lines.r.Peek(64)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if what := foreign(head); what != "" {
		m.lines.n = 1
		m.whole("is " + what + ", not UTF-8 text: save it as CSV or JSONL in UTF-8")
		return nil
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		_, _ = m.lines.r.Discard(3) // just peeked at
		head = head[3:]
	}
	err = nil
	switch first := bytes.TrimLeft(head, " \t\r\n"); {
	case bytes.HasPrefix(first, []byte("{")):
		err = m.jsonl()
	case bytes.HasPrefix(first, []byte("[")):
		m.lines.n = 1
		m.whole("is a JSON array: want one object a line (JSONL), or CSV")
	default:
		err = m.csv()
	}
	if err == nil && len(m.out.rows) == 0 {
		m.whole("holds no rows")
	}
	return err
}

// whole refuses the header or the file as a whole.
func (m *manifestReader) whole(reason string) {
	m.out.rows = append(m.out.rows, found{at: Position{m.out.Name, 0, max(1, m.lines.n)}, refusal: reason})
}

// refuse names a row that cannot be used.
func (m *manifestReader) refuse(line int, reason string) {
	m.out.rows = append(m.out.rows, found{at: Position{m.out.Name, m.row, line}, refusal: reason})
}

// resolve makes a relative file relative to the manifest.
func (m *manifestReader) resolve(file string) string {
	if filepath.IsAbs(file) || m.dir == "" {
		return file
	}
	return filepath.Join(m.dir, file)
}

// foreign names content that is no UTF-8 text by its first bytes.
func foreign(head []byte) string {
	for _, f := range []struct{ magic, name string }{
		{"\xff\xfe\x00\x00", "UTF-32 (little endian)"}, {"\x00\x00\xfe\xff", "UTF-32 (big endian)"},
		{"\xff\xfe", "UTF-16 (little endian)"}, {"\xfe\xff", "UTF-16 (big endian)"},
		{"PK\x03\x04", "a zip file or a spreadsheet"}, {"\x1f\x8b", "compressed (gzip)"},
	} {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return f.name
		}
	}
	switch i := bytes.IndexByte(head, 0); {
	case i < 0:
		return ""
	case i == 1:
		return "UTF-16 (little endian)"
	case i == 0 && len(head) > 1 && head[1] != 0:
		return "UTF-16 (big endian)"
	}
	return "binary"
}

// notUTF8 says of a row in another encoding which byte gives it away; "" for UTF-8.
func notUTF8(row []byte) string {
	for i := 0; i < len(row); {
		r, n := utf8.DecodeRune(row[i:])
		if r == utf8.RuneError && n == 1 {
			return fmt.Sprintf("is not UTF-8 but in another encoding, such as Windows-1252 or Latin-1 (byte 0x%02X): save the manifest as UTF-8", row[i])
		}
		i += n
	}
	return ""
}

var errLongRow = errors.New("the row is longer than 1 MiB")

// lines reads line by line and counts.
type lines struct {
	r *bufio.Reader
	n int // of the line read last
}

// next is a line with its end; io.EOF after the last one.
func (l *lines) next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxManifestRow:
			l.n++
			return nil, errLongRow
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0, err == nil:
			l.n++
			return line, nil
		default:
			return nil, err
		}
	}
}

func blank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }

// columnList is how messages name the columns.
const columnList = "audio_id, file, url, external_id, source, metadata or meta.NAME"

// metaColumn is the name behind "meta.", "" if the column is none.
func metaColumn(column string) string {
	prefix, name, ok := strings.Cut(column, ".")
	if !ok || !strings.EqualFold(strings.TrimSpace(prefix), "meta") {
		return ""
	}
	return strings.TrimSpace(name)
}
