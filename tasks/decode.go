package tasks

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Decode reads the payload of an asynq task of the given type and checks it.
//
// It returns an error wrapping ErrNewerPayload when the type or version is not
// known (leave the task for a newer worker) and one wrapping ErrMalformed when
// a known version cannot be read (the task can never succeed). Errors never
// quote the payload: it may hold a signed URL.
func Decode(typ string, payload []byte) (Payload, error) {
	path, known := pathOfType(typ)
	if !known {
		return Payload{}, fmt.Errorf("task type %q: %w", typ, ErrNewerPayload)
	}
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
	var p Payload
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return Payload{}, fmt.Errorf("read payload fields of version %d: %w", head.Version, ErrMalformed)
	}
	if p.Path != path {
		return Payload{}, fmt.Errorf("payload of path %q in a task of type %q: %w", p.Path, typ, ErrMalformed)
	}
	if err := p.Validate(); err != nil {
		return Payload{}, fmt.Errorf("check payload: %w: %w", err, ErrMalformed)
	}
	return p, nil
}
