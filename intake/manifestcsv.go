package intake

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

var errOpenQuote = errors.New("a quote is never closed")

// csv reads the header, then a record at a time: each stands alone, so that a
// broken one cannot take the others with it.
func (m *manifestReader) csv() error {
	header, delim, err := m.header()
	if err != nil || header == nil {
		return err
	}
	var empty []int // lines; they matter only if a record follows
	for {
		raw, line, err := m.record(delim)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errOpenQuote), errors.Is(err, errLongRow):
			m.row++
			m.refuse(line, "opens a quote that is never closed, or is longer than 1 MiB; nothing after it was read")
			return nil
		case err != nil:
			return err
		case blank(raw):
			empty = append(empty, line)
			continue
		}
		for _, at := range empty {
			m.row++
			m.refuse(at, "is an empty line")
		}
		empty = nil
		m.row++
		m.csvRow(header, raw, line, delim)
	}
}

// header reads the names of the columns; nil when they cannot be used, which
// the manifest then says.
func (m *manifestReader) header() ([]string, byte, error) {
	var raw []byte
	for {
		line, err := m.lines.next()
		if errors.Is(err, io.EOF) {
			return nil, 0, nil
		}
		if err != nil && !errors.Is(err, errLongRow) {
			return nil, 0, err
		}
		raw = line
		if err != nil || !blank(line) {
			break
		}
	}
	if reason := notUTF8(raw); reason != "" {
		m.whole(reason)
		return nil, 0, nil
	}
	raw = bytes.TrimRight(raw, "\r\n")
	if bytes.ContainsRune(raw, '\r') {
		m.whole("ends its lines as old Macs do (CR): save it with LF or CRLF")
		return nil, 0, nil
	}
	delim := delimiter(raw)
	names, err := fields(raw, delim)
	if err != nil {
		m.whole("cannot be read as the header: " + err.Error())
		return nil, 0, nil //nolint:nilerr // whole noted it
	}
	for i := range names {
		names[i] = columnName(names[i])
	}
	if reason := badHeader(names); reason != "" {
		m.whole(reason)
		return nil, 0, nil
	}
	return names, delim, nil
}

// badHeader refuses the whole manifest: a column nobody knows may be a
// misspelt one that every row needs, and an upload cannot be undone.
func badHeader(names []string) string {
	for i, name := range names {
		switch {
		case name == "":
			return fmt.Sprintf("has no name for column %d: the first line names the columns", i+1)
		case metaColumn(name) == "" && !slices.Contains(columns, name):
			return fmt.Sprintf("has an unknown column %.40q: the first line names the columns, %s", name, columnList)
		case slices.Contains(names[:i], name):
			return fmt.Sprintf("has the column %q twice", name)
		}
	}
	if !slices.Contains(names, "file") && !slices.Contains(names, "url") {
		return "has neither a column file nor a column url"
	}
	return ""
}

// delimiter is what separates the names in the header.
func delimiter(header []byte) byte {
	best, most := byte(','), bytes.Count(header, []byte{','})
	for _, d := range []byte{';', '\t'} {
		if n := bytes.Count(header, []byte{d}); n > most {
			best, most = d, n
		}
	}
	return best
}

func (m *manifestReader) csvRow(header []string, raw []byte, line int, delim byte) {
	if reason := notUTF8(raw); reason != "" {
		m.refuse(line, reason)
		return
	}
	cells, err := fields(raw, delim)
	switch {
	case err != nil:
		m.refuse(line, err.Error())
		return
	case !slices.ContainsFunc(cells, func(c string) bool { return strings.TrimSpace(c) != "" }):
		m.refuse(line, "is an empty row")
		return
	case len(cells) != len(header):
		m.refuse(line, fmt.Sprintf("has %d fields, the header has %d: put text with separators into quotes", len(cells), len(header)))
		return
	}
	var d draft
	for i, name := range header {
		d.text(name, cells[i])
	}
	m.finish(d, line)
}

// record reads the lines of one record, as they stand: a line end within
// quotes does not end it. line is the number of its first one.
func (m *manifestReader) record(delim byte) (raw []byte, line int, err error) {
	open := false
	for {
		part, err := m.lines.next()
		if len(raw) == 0 {
			line = m.lines.n
		}
		switch {
		case errors.Is(err, io.EOF) && open:
			return nil, line, errOpenQuote
		case err != nil:
			return nil, line, err
		case len(raw)+len(part) > maxManifestRow:
			return nil, line, errLongRow
		}
		raw = append(raw, part...)
		if open = quoteOpen(part, delim, open); !open {
			return raw, line, nil
		}
	}
}

// quoteOpen reports whether a quoted field is still open behind a line. Only a
// quote that begins a field opens one.
func quoteOpen(line []byte, delim byte, open bool) bool {
	start := !open
	for i := 0; i < len(line); i++ {
		switch b := line[i]; {
		case open && b == '"' && i+1 < len(line) && line[i+1] == '"':
			i++
		case b == '"' && (open || start):
			open, start = !open, false
		default:
			start = b == delim
		}
	}
	return open
}

// fields takes one record apart.
func fields(raw []byte, delim byte) ([]string, error) {
	r := csv.NewReader(bytes.NewReader(raw))
	r.Comma, r.FieldsPerRecord = rune(delim), -1
	cells, err := r.Read()
	switch {
	case errors.Is(err, csv.ErrBareQuote):
		return nil, errors.New("has a quote within a field that is not in quotes: write it twice and put the field into quotes")
	case errors.Is(err, csv.ErrQuote):
		return nil, errors.New("has a quote within a field that is not written twice")
	case err != nil:
		return nil, errors.New("cannot be read as CSV")
	}
	return cells, nil
}
