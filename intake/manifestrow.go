package intake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// columns are what a manifest may hold beside meta.NAME.
var columns = []string{"audio_id", "file", "url", "external_id", "source", "metadata"}

// draft is a row while its cells are read. Its first fault is its reason.
type draft struct {
	found
	meta  map[string]json.RawMessage
	fault string
}

func (d *draft) fail(format string, args ...any) {
	if d.fault == "" {
		d.fault = fmt.Sprintf(format, args...)
	}
}

// text sets a column from text, as CSV has it.
func (d *draft) text(column, value string) {
	if name := metaColumn(column); name != "" {
		if value != "" {
			quoted, _ := json.Marshal(value) //nolint:errchkjson // a string: it cannot fail
			d.addMeta(name, quoted)
		}
		return
	}
	value = strings.TrimSpace(value)
	if value == "" {
		return
	}
	switch column {
	case "audio_id":
		d.setID(value)
	case "file":
		d.path = value
	case "url":
		d.url = value
	case "external_id":
		d.externalID = value
	case "source":
		d.source = strings.ToLower(value)
	case "metadata":
		d.setMetadata([]byte(value))
	}
}

// value sets a column from a JSON value.
func (d *draft) value(column string, raw json.RawMessage) {
	raw = bytes.TrimSpace(raw)
	name := metaColumn(column)
	known := name != "" || slices.Contains(columns, column)
	switch {
	case !known:
		d.fail("has an unknown field %q: want %s", column, columnList)
	case bytes.Equal(raw, []byte("null")):
	case name != "":
		d.addMeta(name, raw)
	case column == "metadata":
		d.setMetadata(raw)
	default:
		var s string
		if raw[0] != '"' {
			s = string(raw)
			if column != "audio_id" && (column != "external_id" || !isNumber(raw)) {
				d.fail("%s: want a text", column)
				return
			}
		} else if err := json.Unmarshal(raw, &s); err != nil {
			d.fail("%s cannot be read", column)
			return
		}
		d.text(column, s)
	}
}

func isNumber(raw []byte) bool { return raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' }

func (d *draft) setID(value string) {
	id, err := strconv.ParseInt(value, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		d.fail("audio_id %.40q does not fit into 64 bits", value)
	case err != nil:
		d.fail("audio_id %.40q is not an integer", value)
	case id < 0:
		d.fail("audio_id %d is negative: want 0 or more", id)
	default:
		d.audioID = &id
	}
}

func (d *draft) setMetadata(raw []byte) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		d.fail("metadata is not a JSON object")
		return
	}
	for name, v := range fields {
		d.addMeta(name, v)
	}
}

func (d *draft) addMeta(name string, raw json.RawMessage) {
	if d.meta == nil {
		d.meta = map[string]json.RawMessage{}
	}
	if _, twice := d.meta[name]; twice {
		d.fail("has the metadata %q twice", name)
	}
	d.meta[name] = raw
}

// finish checks the row as a whole and adds it to the manifest.
func (m *manifestReader) finish(d draft, line int) {
	switch {
	case d.fault != "":
	case d.path == "" && d.url == "":
		d.fail("names neither a file nor a url")
	case d.path != "" && d.url != "":
		d.fail("names both a file and a url: want one")
	case isURL(d.path):
		d.fail("has a URL in the column file: put it into the column url")
	case otherURL(d.path):
		d.fail("has in the column file what %s, in the column url", onlyHTTP)
	}
	if d.fault != "" {
		m.refuse(line, d.fault)
		return
	}
	if len(d.meta) > 0 {
		raw, err := json.Marshal(d.meta)
		if err != nil {
			m.refuse(line, "has metadata that cannot be read")
			return
		}
		d.metadata = raw
	}
	if d.url != "" {
		d.name = shownURL(d.url)
	} else {
		d.path = m.resolve(d.path)
		d.name = d.path
	}
	d.at = Position{m.out.Name, m.row, line}
	m.out.rows = append(m.out.rows, d.found)
}
