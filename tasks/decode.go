package tasks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// maxPayload is the largest payload that Decode reads, in bytes. The largest valid payload is far smaller.
const maxPayload = 1 << 20

// ErrNewerPayload means that this build does not know the type or version. The task stays queued for a newer worker.
var ErrNewerPayload = errors.New("payload is newer than this worker")

// ErrMalformed means that a payload of a known version cannot be read. The task can never succeed.
var ErrMalformed = errors.New("payload is malformed")

// Decode reads and validates the payload of an asynq task of the given type.
//
// The error wraps ErrNewerPayload when the type or version is unknown. It wraps ErrMalformed when a field is unknown,
// repeated, of the wrong type or out of range, or when the key belongs to other work. Errors are one line and never
// quote the payload, which may contain a signed URL.
func Decode(typ string, payload []byte) (Payload, error) {
	path, known := pathOfType(typ)
	if !known {
		return Payload{}, fmt.Errorf("task type %.64q: %w", typ, ErrNewerPayload)
	}
	if len(payload) > maxPayload {
		return Payload{}, fmt.Errorf("payload is %d bytes; the limit is %d: %w", len(payload), maxPayload, ErrMalformed)
	}
	p, err := decodeFields(payload)
	if err != nil {
		return Payload{}, err
	}
	if p.Path != path {
		return Payload{}, fmt.Errorf("payload path does not match task type %q: %w", typ, ErrMalformed)
	}
	if err := p.Validate(); err != nil {
		return Payload{}, fmt.Errorf("check payload: %w: %w", err, ErrMalformed)
	}
	return p, nil
}

// DecodeQueued decodes a payload that was read from a queue. The queue's name gives the type and the returned group.
func DecodeQueued(queue string, payload []byte) (p Payload, group string, err error) {
	path, group, err := SplitQueue(queue)
	if err != nil {
		return Payload{}, "", err
	}
	p, err = Decode(path.Type(), payload)
	return p, group, err
}

// decodeFields has a fast path for the payloads that Task writes. A payload that encodes to the same bytes again has no
// unknown, repeated or misspelled field. BenchmarkDecode takes a fifth of the time with it.
func decodeFields(payload []byte) (p Payload, err error) {
	if err := json.Unmarshal(payload, &p); err == nil && p.Version == PayloadVersion {
		if again, err := json.Marshal(p); err == nil && bytes.Equal(again, payload) {
			return p, nil
		}
	}
	return decodeStrictly(payload)
}

// decodeStrictly reads the version first, so it recognises a newer payload whose other fields it does not know.
func decodeStrictly(payload []byte) (p Payload, err error) {
	var head struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal(payload, &head); err != nil {
		return p, fmt.Errorf("read payload version: %w", ErrMalformed)
	}
	if head.Version > PayloadVersion {
		return p, fmt.Errorf("payload version %d, this worker reads up to %d: %w", head.Version, PayloadVersion, ErrNewerPayload)
	}
	if head.Version < 1 {
		return p, fmt.Errorf("payload has no version: %w", ErrMalformed)
	}
	if err := checkNames(json.NewDecoder(bytes.NewReader(payload))); err != nil {
		return p, fmt.Errorf("read payload fields of version %d: %w: %w", head.Version, err, ErrMalformed)
	}
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return Payload{}, fmt.Errorf("read payload fields of version %d: unknown field or wrong type: %w", head.Version, ErrMalformed)
	}
	return p, nil
}

// checkNames reads one valid JSON value and rejects field names that encoding/json accepts: a repeated name, of which
// the last wins, and a name that differs from a known one only in case.
func checkNames(dec *json.Decoder) error {
	token, err := dec.Token()
	open, nested := token.(json.Delim)
	if err != nil || !nested {
		return err
	}
	seen := map[string]bool{}
	for dec.More() {
		if open == '{' {
			token, err := dec.Token()
			name, _ := token.(string) // a token that begins a pair is a string
			switch {
			case err != nil:
				return err
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
	_, err = dec.Token()
	return err
}

// isForeign reports whether c occurs in no field name of a payload.
func isForeign(c rune) bool {
	return c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9')
}
