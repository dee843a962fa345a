package tasks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// maxPayload bounds what Decode reads, in bytes. The largest valid payload is
// far smaller.
const maxPayload = 1 << 20

// ErrNewerPayload means that this build does not know the type or version: the
// task stays queued for a newer worker.
var ErrNewerPayload = errors.New("payload is newer than this worker")

// ErrMalformed means that a payload of a known version cannot be read. The
// task can never succeed.
var ErrMalformed = errors.New("payload is malformed")

// Decode reads and validates the payload of an asynq task of the given type.
//
// The error wraps ErrNewerPayload when the type or version is unknown, and
// ErrMalformed when a field is unknown, repeated, of the wrong type or out of
// range, or when the key belongs to other work. Errors are one line and never
// quote the payload, which may hold a signed URL.
func Decode(typ string, payload []byte) (Payload, error) {
	path, known := pathOfType(typ)
	if !known {
		return Payload{}, fmt.Errorf("task type %.64q: %w", typ, ErrNewerPayload)
	}
	if len(payload) > maxPayload {
		return Payload{}, fmt.Errorf("payload of %d bytes, at most %d are read: %w", len(payload), maxPayload, ErrMalformed)
	}
	p, err := decodeFields(payload)
	if err != nil {
		return Payload{}, err
	}
	if p.Path != path {
		return Payload{}, fmt.Errorf("payload of another path in a task of type %q: %w", typ, ErrMalformed)
	}
	if err := p.Validate(); err != nil {
		return Payload{}, fmt.Errorf("check payload: %w: %w", err, ErrMalformed)
	}
	return p, nil
}

// DecodeQueued is Decode for a payload of a queue, by whose name it knows the type. It also returns the queue's group.
func DecodeQueued(queue string, payload []byte) (p Payload, group string, err error) {
	path, group, err := SplitQueue(queue)
	if err != nil {
		return Payload{}, "", err
	}
	p, err = Decode(path.Type(), payload)
	return p, group, err
}

// decodeFields has a fast path for the payloads that Task writes: a payload that
// encodes to the same bytes again has no unknown, repeated or misspelled field.
func decodeFields(payload []byte) (Payload, error) {
	var p Payload
	if err := json.Unmarshal(payload, &p); err == nil && p.Version == PayloadVersion {
		if again, err := json.Marshal(p); err == nil && bytes.Equal(again, payload) {
			return p, nil
		}
	}
	return decodeStrictly(payload)
}

// decodeStrictly reads the version first, so that a newer payload is recognised
// whatever its other fields look like.
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
	if err := checkNames(json.NewDecoder(bytes.NewReader(payload))); err != nil {
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

// checkNames reads one JSON value and rejects field names that encoding/json
// accepts silently: repeated ones, of which the last wins, and ones that differ
// from a known name in case only.
func checkNames(dec *json.Decoder) error {
	token, err := dec.Token()
	if err != nil {
		return errors.New("not JSON")
	}
	open, nested := token.(json.Delim)
	if !nested {
		return nil
	}
	seen := map[string]bool{}
	for dec.More() {
		if open == '{' {
			token, err := dec.Token()
			name, _ := token.(string) // between { and } a token that begins a pair is a string
			switch {
			case err != nil:
				return errors.New("not JSON")
			case seen[name]:
				return errors.New("a field is given twice")
			case strings.ContainsFunc(name, isForeign):
				return errors.New("unknown field")
			}
			seen[name] = true
		}
		if err := checkNames(dec); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return errors.New("not JSON")
	}
	return nil
}

// isForeign is true for characters that occur in no field name of a payload.
func isForeign(c rune) bool {
	return c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9')
}
