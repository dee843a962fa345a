package intake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"reprise/tasks"
)

// columns are the columns of a manifest besides meta.NAME.
var columns = []string{"audio_id", "file", "url", "external_id", "source", "metadata"}

// columnList names the columns in messages.
const columnList = "audio_id, file, url, external_id, source, metadata or meta.NAME"

func knownColumn(name string) bool { return metaColumn(name) != "" || slices.Contains(columns, name) }

// shownName quotes the name of an unknown column. In a file without a header it is a value, which may be a signed URL.
func shownName(name string) string {
	if strings.Contains(name, "://") {
		name = tasks.RedactURL(name)
	}
	return fmt.Sprintf("%.40q", name)
}

// columnName returns the normal form of a column: lower case, except for the NAME of meta.NAME.
func columnName(raw string) string {
	raw = strings.TrimSpace(raw)
	if name := metaColumn(raw); name != "" {
		return "meta." + name
	}
	return strings.ToLower(raw)
}

// metaColumn returns the NAME of a column meta.NAME, "" for other columns.
func metaColumn(column string) string {
	prefix, name, ok := strings.Cut(column, ".")
	if !ok || !strings.EqualFold(strings.TrimSpace(prefix), "meta") {
		return ""
	}
	return strings.TrimSpace(name)
}

// manifestRow is a row whose fields are being read. The first fault is its refusal.
type manifestRow struct {
	input
	meta map[string]json.RawMessage
}

func (row *manifestRow) fail(format string, args ...any) {
	if row.refused == "" {
		row.refused = fmt.Sprintf(format, args...)
	}
}

// setText sets a column from text, as in a CSV. Empty text leaves it unset.
func (row *manifestRow) setText(column, value string) {
	if name := metaColumn(column); name != "" {
		if value != "" {
			quoted, _ := json.Marshal(value) //nolint:errchkjson // a string always encodes
			row.addMeta(name, quoted)
		}
		return
	}
	value = strings.TrimSpace(value)
	if value == "" {
		return
	}
	switch column {
	case "audio_id":
		row.setAudioID(value)
	case "file":
		row.path = value
	case "url":
		row.url = value
	case "external_id":
		row.externalID = value
	case "source":
		row.source = strings.ToLower(value)
	case "metadata":
		row.setMetadata([]byte(value))
	}
}

// setJSON sets a column from a JSON value. null leaves it unset.
func (row *manifestRow) setJSON(column string, raw json.RawMessage) {
	raw = bytes.TrimSpace(raw)
	name := metaColumn(column)
	var text string
	switch {
	case !knownColumn(column):
		row.fail("has an unknown field %s: the fields are %s", shownName(column), columnList)
	case bytes.Equal(raw, []byte("null")):
	case name != "":
		row.addMeta(name, raw)
	case column == "metadata":
		row.setMetadata(raw)
	case json.Unmarshal(raw, &text) == nil:
		row.setText(column, text)
	case column == "audio_id", column == "external_id" && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'):
		row.setText(column, string(raw))
	default:
		row.fail("has a %s that is not a string", column)
	}
}

// setObject reads the fields of one JSON object. It refuses a field that occurs twice, because encoding/json silently
// takes the last one.
func (row *manifestRow) setObject(line []byte) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	open, err := dec.Token()
	if err == nil && open != json.Delim('{') {
		return errors.New("is not a JSON object")
	}
	seen := map[string]bool{}
	for err == nil && dec.More() {
		var key json.Token
		var raw json.RawMessage
		if key, err = dec.Token(); err == nil {
			err = dec.Decode(&raw)
		}
		if err != nil {
			break
		}
		name := columnName(fmt.Sprint(key))
		if seen[name] {
			return fmt.Errorf("has the field %q twice", name)
		}
		seen[name] = true
		row.setJSON(name, raw)
	}
	if err == nil {
		_, err = dec.Token() // the closing brace
	}
	if err != nil {
		return errors.New("is not valid JSON: " + jsonFault(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("has text after its JSON object")
	}
	return nil
}

// jsonFault describes a decoding error without quoting the row.
func jsonFault(err error) string {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("it has an error at byte %d", syntax.Offset)
	}
	return "it ends too early"
}

func (row *manifestRow) setAudioID(value string) {
	id, err := strconv.ParseInt(value, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		row.fail("audio_id %.40q does not fit in 64 bits", value)
	case err != nil:
		row.fail("audio_id %.40q is not an integer", value)
	case id < 0:
		row.fail("audio_id %d is negative: it must be 0 or more", id)
	default:
		row.audioID = &id
	}
}

func (row *manifestRow) setMetadata(raw []byte) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		row.fail("metadata is not a JSON object")
		return
	}
	for name, v := range fields {
		row.addMeta(name, v)
	}
}

func (row *manifestRow) addMeta(name string, raw json.RawMessage) {
	if row.meta == nil {
		row.meta = map[string]json.RawMessage{}
	}
	if _, twice := row.meta[name]; twice {
		row.fail("has the metadata %q twice", name)
	}
	row.meta[name] = raw
}

// finish checks the row as a whole and makes its file relative to dir.
func (row *manifestRow) finish(dir string) {
	switch {
	case row.refused != "":
	case row.path == "" && row.url == "":
		row.fail("names neither a file nor a url")
	case row.path != "" && row.url != "":
		row.fail("names both a file and a url: use only one")
	case isURL(row.path):
		row.fail("has a URL in the file column: move it to the url column")
	case otherURL(row.path):
		row.fail("has a URL in the file column: move it to the url column, where only http and https work")
	}
	if len(row.meta) > 0 {
		var err error
		if row.metadata, err = json.Marshal(row.meta); err != nil {
			row.fail("has metadata that cannot be encoded")
		}
	}
	switch {
	case row.url != "":
		row.name = tasks.RedactURL(row.url)
		return
	case !filepath.IsAbs(row.path) && dir != "":
		row.path = filepath.Join(dir, row.path)
	}
	row.name = row.path
}
