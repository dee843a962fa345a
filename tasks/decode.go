package tasks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxPayload bounds what Decode reads, far above what Validate lets through.
const maxPayload = 1 << 20

// Decode reads the payload of an asynq task of the given type and checks it.
//
// It returns an error wrapping ErrNewerPayload when the type or version is not
// known (leave the task for a newer worker) and one wrapping ErrMalformed when
// a known version cannot be read (the task can never succeed): an unknown,
// repeated or wrongly typed field, a value out of range, a key of other work.
// Errors are one line and never quote the payload: it may hold a signed URL.
func Decode(typ string, payload []byte) (Payload, error) {
	path, known := pathOfType(typ)
	if !known {
		return Payload{}, fmt.Errorf("task type %.64q: %w", typ, ErrNewerPayload)
	}
	if len(payload) > maxPayload {
		return Payload{}, fmt.Errorf("payload of %d bytes, at most %d are read: %w", len(payload), maxPayload, ErrMalformed)
	}
	p, own := decodeOwn(payload)
	if !own {
		var err error
		if p, err = decodeStrictly(payload); err != nil {
			return Payload{}, err
		}
	}
	if p.Path != path {
		return Payload{}, fmt.Errorf("payload of another path in a task of type %q: %w", typ, ErrMalformed)
	}
	if err := p.Validate(); err != nil {
		return Payload{}, fmt.Errorf("check payload: %w: %w", err, ErrMalformed)
	}
	return p, nil
}

// decodeOwn reads what New and Task write, which is nearly every payload: what
// scanned knows, and for the rest equal bytes after a round trip, which say all
// that decodeStrictly looks for: no unknown
// or repeated field, no name in another case, nothing after the end.
func decodeOwn(payload []byte) (Payload, bool) {
	p, own := scanned(payload)
	if !own {
		p = Payload{}
		if json.Unmarshal(payload, &p) != nil {
			return Payload{}, false
		}
		again, err := json.Marshal(p)
		own = err == nil && bytes.Equal(again, payload)
	}
	return p, own && p.Version == PayloadVersion
}

// decodeStrictly reads a payload that may have been written by anybody.
func decodeStrictly(payload []byte) (Payload, error) {
	var head struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal(payload, &head); err != nil {
		return Payload{}, fmt.Errorf("read payload version: %w", ErrMalformed)
	}
	if head.Version > PayloadVersion {
		return Payload{}, fmt.Errorf("payload version %d, this worker reads up to %d: %w", head.Version, PayloadVersion, ErrNewerPayload)
	}
	if head.Version < 1 {
		return Payload{}, fmt.Errorf("payload has no version: %w", ErrMalformed)
	}
	if err := checkNames(payload); err != nil {
		return Payload{}, fmt.Errorf("read payload fields of version %d: %w: %w", head.Version, err, ErrMalformed)
	}
	var p Payload
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return Payload{}, fmt.Errorf("read payload fields of version %d: unknown field or wrong type: %w", head.Version, ErrMalformed)
	}
	return p, nil
}

// checkNames finds names that encoding/json would silently take for others:
// repeated ones, of which the last would win, and ones in another case.
func checkNames(payload []byte) error {
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.UseNumber()
	type level struct {
		names map[string]bool // nil in an array
		value bool            // the next token is a value
	}
	var open []level
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errors.New("not JSON")
		}
		top := len(open) - 1
		if name, is := token.(string); is && top >= 0 && open[top].names != nil && !open[top].value {
			if open[top].names[name] {
				return errors.New("a field is given twice")
			}
			if strings.ContainsFunc(name, func(c rune) bool { return c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') }) {
				return errors.New("unknown field")
			}
			open[top].names[name], open[top].value = true, true
			continue
		}
		if top >= 0 {
			open[top].value = false
		}
		switch token {
		case json.Delim('{'):
			open = append(open, level{names: map[string]bool{}})
		case json.Delim('['):
			open = append(open, level{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:top]
		}
	}
}
