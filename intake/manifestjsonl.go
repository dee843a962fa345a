package intake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// jsonl reads one object a line. Empty lines are skipped.
func (m *manifestReader) jsonl() error {
	for {
		line, err := m.lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errLongRow):
			m.row++
			m.refuse(m.lines.n, "is longer than 1 MiB; nothing after it was read")
			return nil
		case err != nil:
			return err
		case blank(line):
			continue
		}
		m.row++
		if reason := notUTF8(line); reason != "" {
			m.refuse(m.lines.n, reason)
			continue
		}
		var d draft
		if err := d.object(line); err != nil {
			d.fail("%s", err.Error())
		}
		m.finish(d, m.lines.n)
	}
}

// object reads the fields of one JSON object. encoding/json would take the
// last of two fields with one name; which of two audio_ids is meant nobody can say.
func (d *draft) object(line []byte) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	open, err := dec.Token()
	if err != nil {
		return errors.New("is not JSON: " + jsonFault(err))
	}
	if open != json.Delim('{') {
		return errors.New("is not a JSON object")
	}
	seen := map[string]bool{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return errors.New("is not JSON: " + jsonFault(err))
		}
		name := columnName(fmt.Sprint(key))
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return errors.New("is not JSON: " + jsonFault(err))
		}
		if seen[name] {
			return fmt.Errorf("has the field %q twice", name)
		}
		seen[name] = true
		d.value(name, raw)
	}
	if _, err := dec.Token(); err != nil {
		return errors.New("is not JSON: " + jsonFault(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("has text after its JSON object")
	}
	return nil
}

// jsonFault is the decoder's message without what it quotes of the row.
func jsonFault(err error) string {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends too early"
	case errors.As(err, &syntax):
		return fmt.Sprintf("it breaks at byte %d", syntax.Offset)
	}
	return "it cannot be read"
}

// columnName is a column in its one form; the case of a meta.NAME is kept.
func columnName(raw string) string {
	raw = strings.TrimSpace(raw)
	if name := metaColumn(raw); name != "" {
		return "meta." + name
	}
	return strings.ToLower(raw)
}
