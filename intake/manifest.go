package intake

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Manifest is a list of inputs with their metadata. It includes the rows that cannot be used, and a plan reports why.
type Manifest struct {
	Name string
	rows []input
}

// maxManifestRow is the longest row in bytes. In a longer CSV row a closing quote is probably missing.
const maxManifestRow = 1 << 20

const byteOrderMark = "\xef\xbb\xbf"

// ReadManifest reads a manifest in UTF-8: CSV (separated by commas, semicolons or tabs; the first line names the
// columns) or JSONL (one object per line). The content decides which. The columns are
//
//	audio_id     integer, 0 or more     file or url   the audio
//	external_id  text                   source        the account (uploads)
//	metadata     a JSON object          meta.NAME     one value of it
//
// Relative files are relative to dir. A row that cannot be used, or a header that makes all rows unusable, is not
// an error: the plan refuses it with its row and line. An error means that reading r failed or ctx has ended.
func ReadManifest(ctx context.Context, r io.Reader, name, dir string) (*Manifest, error) {
	m := &manifestReader{
		r:   bufio.NewReaderSize(&contextReader{ctx: ctx, r: r}, 64<<10),
		out: &Manifest{Name: name}, dir: dir,
	}
	if err := m.read(); err != nil {
		return nil, fmt.Errorf("read the manifest %s: %w", name, err)
	}
	return m.out, nil
}

// manifestReader collects the rows of both formats.
type manifestReader struct {
	r         *bufio.Reader
	out       *Manifest
	dir       string // of relative files
	row, line int    // of the current row
}

func (m *manifestReader) read() error {
	start, err := m.r.Peek(m.r.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if format := notText(start[:min(len(start), 64)]); format != "" {
		m.refuseAll("is " + format + ", not UTF-8 text: save it as CSV or JSONL in UTF-8")
		return nil
	}
	if bytes.HasPrefix(start, []byte(byteOrderMark)) {
		_, _ = m.r.Discard(len(byteOrderMark)) // Peek has buffered it
		start = start[len(byteOrderMark):]
	}
	err = nil
	switch first := bytes.TrimLeft(start, " \t\r\n"); {
	case bytes.HasPrefix(first, []byte("{")):
		err = m.jsonl()
	case bytes.HasPrefix(first, []byte("[")):
		m.refuseAll("is a JSON array: write one object per line (JSONL), or CSV")
	default:
		header, _, _ := bytes.Cut(first, []byte("\n"))
		err = m.csv(delimiter(header))
	}
	if err == nil && len(m.out.rows) == 0 {
		m.refuseAll("has no rows")
	}
	return err
}

// refuseAll refuses the header or the file as a whole.
func (m *manifestReader) refuseAll(reason string) {
	m.out.rows = append(m.out.rows, input{at: Position{m.out.Name, 0, max(1, m.line)}, refused: reason})
}

// refuse refuses the current row.
func (m *manifestReader) refuse(reason string) {
	m.out.rows = append(m.out.rows, input{at: Position{m.out.Name, m.row, m.line}, refused: reason})
}

// add adds the current row, or its refusal.
func (m *manifestReader) add(row manifestRow) {
	if row.finish(m.dir); row.refused != "" {
		m.refuse(row.refused)
		return
	}
	row.at = Position{m.out.Name, m.row, m.line}
	m.out.rows = append(m.out.rows, row.input)
}

// csv reads the header and the rows. Empty lines are skipped.
func (m *manifestReader) csv(delim rune) error {
	limit := &rowLimit{r: m.r}
	r := csv.NewReader(limit)
	r.Comma, r.FieldsPerRecord = delim, -1
	var header []string
	for {
		cells, err := r.Read()
		if m.line++; len(cells) > 0 { // else the line after the last one
			m.line, _ = r.FieldPos(0)
		}
		wrong, broken := errors.AsType[*csv.ParseError](err)
		if broken {
			m.line = wrong.StartLine
		}
		limit.read = 0
		switch {
		case errors.Is(err, io.EOF):
			if m.row == 0 {
				m.line = 1
			}
			return nil
		case errors.Is(err, errLongRow):
			m.row++
			m.refuse("is longer than 1 MiB, so a closing quote is probably missing; the rows after it were not read")
			return nil
		case err != nil && !broken:
			return err
		case header == nil && broken:
			m.refuseAll(csvFault(wrong))
			return nil
		case header == nil:
			header = cells
			if reason := checkHeader(header); reason != "" {
				m.refuseAll(reason)
				return nil
			}
		case len(cells) == 1 && strings.TrimSpace(cells[0]) == "" && !broken: // a line of spaces
		default:
			m.csvRow(header, cells, wrong)
		}
	}
}

func (m *manifestReader) csvRow(header, cells []string, wrong *csv.ParseError) {
	m.row++
	encoding := notUTF8(cells...)
	switch {
	case encoding != "":
		m.refuse(encoding)
		return
	case wrong != nil:
		m.refuse(csvFault(wrong))
		return
	case !slices.ContainsFunc(cells, func(c string) bool { return strings.TrimSpace(c) != "" }):
		m.refuse("is an empty row")
		return
	case len(cells) != len(header):
		m.refuse(fmt.Sprintf("has %d fields, but the header has %d: enclose text that contains separators in quotes", len(cells), len(header)))
		return
	}
	var row manifestRow
	for i, name := range header {
		row.setText(name, cells[i])
	}
	m.add(row)
}

// csvFault describes a quoting error. After a quote that is not closed, the following lines become part of the row, in
// the worst case all of them.
func csvFault(err *csv.ParseError) string {
	switch {
	case errors.Is(err, csv.ErrBareQuote):
		return "has a quote inside an unquoted field: enclose the field in quotes and double the inner quote"
	case err.Line > err.StartLine:
		return fmt.Sprintf("opens a quote that is not closed correctly: lines %d to %d were read as one row", err.StartLine, err.Line)
	}
	return "has a quoted field that is not closed or that contains a single quote character; double inner quotes"
}

// delimiter returns the separator that occurs most often in the header.
func delimiter(header []byte) rune {
	best, most := ',', bytes.Count(header, []byte{','})
	for _, d := range ";\t" {
		if n := bytes.Count(header, []byte(string(d))); n > most {
			best, most = d, n
		}
	}
	return best
}

// checkHeader puts the column names into their normal form. It returns why the header cannot be used, "" if it can. An
// unknown column refuses the whole manifest, because it may be a mistyped name of a column that every row needs, and an
// upload cannot be undone.
func checkHeader(names []string) string {
	if reason := notUTF8(names...); reason != "" {
		return reason
	}
	for i, raw := range names {
		names[i] = columnName(raw)
		switch name := names[i]; {
		case strings.Contains(raw, "\r"):
			return "has CR line endings: save it with LF or CRLF line endings"
		case name == "":
			return fmt.Sprintf("has no name for column %d: the first line must name the columns", i+1)
		case !knownColumn(name):
			return fmt.Sprintf("has an unknown column %s: the first line must name the columns, which are %s", shownName(name), columnList)
		case slices.Contains(names[:i], name):
			return fmt.Sprintf("has the column %q twice", name)
		}
	}
	if !slices.Contains(names, "file") && !slices.Contains(names, "url") {
		return "needs a file or url column"
	}
	return ""
}

// jsonl reads one object per line. Empty lines are skipped.
func (m *manifestReader) jsonl() error {
	scan := bufio.NewScanner(m.r)
	scan.Buffer(nil, maxManifestRow)
	for scan.Scan() {
		m.line++
		line := bytes.TrimSpace(scan.Bytes())
		if len(line) == 0 {
			continue
		}
		m.row++
		if reason := notUTF8(string(line)); reason != "" {
			m.refuse(reason)
			continue
		}
		var row manifestRow
		if err := row.setObject(line); err != nil {
			row.fail("%s", err.Error())
		}
		m.add(row)
	}
	if errors.Is(scan.Err(), bufio.ErrTooLong) {
		m.row, m.line = m.row+1, m.line+1
		m.refuse("is longer than 1 MiB; the rows after it were not read")
		return nil
	}
	return scan.Err()
}

var errLongRow = errors.New("the row is longer than 1 MiB")

// rowLimit fails when one row has more than about maxManifestRow bytes. A csv.Reader reads up to 4 KiB ahead. The caller
// sets read to 0 after each row.
type rowLimit struct {
	r    io.Reader
	read int
}

func (l *rowLimit) Read(p []byte) (int, error) {
	if l.read > maxManifestRow {
		return 0, errLongRow
	}
	n, err := l.r.Read(p)
	l.read += n
	return n, err
}

// notText returns the format of a file that is not UTF-8 text, by its first bytes; "" = text.
func notText(start []byte) string {
	for _, f := range []struct{ magic, name string }{
		{"\xff\xfe\x00\x00", "UTF-32 (little endian)"}, {"\x00\x00\xfe\xff", "UTF-32 (big endian)"},
		{"\xff\xfe", "UTF-16 (little endian)"}, {"\xfe\xff", "UTF-16 (big endian)"},
		{"PK\x03\x04", "a zip file or a spreadsheet"}, {"\x1f\x8b", "compressed (gzip)"},
	} {
		if bytes.HasPrefix(start, []byte(f.magic)) {
			return f.name
		}
	}
	if bytes.IndexByte(start, 0) >= 0 {
		return "UTF-16 or binary"
	}
	return ""
}

// notUTF8 returns the refusal of text in another encoding, with the first byte that is not UTF-8; "" = UTF-8.
func notUTF8(texts ...string) string {
	for _, text := range texts {
		for i, r := range text {
			if _, n := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && n == 1 {
				return fmt.Sprintf("is not UTF-8 but another encoding, such as Windows-1252 or Latin-1 (byte 0x%02X): save the manifest as UTF-8", text[i])
			}
		}
	}
	return ""
}
