package auddsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
)

// decodeStrict decodes exactly one JSON value and refuses unknown fields.
func decodeStrict(data []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(to); err != nil {
		return fmt.Errorf("decode JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("decode JSON: more than one value")
	}
	return nil
}

// raw encodes a value whose type always encodes.
func raw(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(`null`)
	}
	return data
}

// jsonDuration is a duration that is text in JSON, such as "200ms".
type jsonDuration time.Duration

func (d jsonDuration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// IsZero reports whether the duration is omitted.
func (d *jsonDuration) IsZero() bool { return *d == 0 }

func (d *jsonDuration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = jsonDuration(parsed)
	return err
}

// globMatch reports whether text matches a pattern, in which * is any text, slashes included, and ? is one character. It
// ignores case.
func globMatch(pattern, text string) bool {
	noSlash := strings.NewReplacer("/", "\x00")
	pattern = strings.NewReplacer(`\`, `\\`, "[", `\[`, "/", "\x00").Replace(strings.ToLower(pattern))
	ok, _ := path.Match(pattern, noSlash.Replace(strings.ToLower(text))) // an escaped pattern is always valid
	return ok
}

// checks collects everything that is wrong with a setting.
type checks []error

func (c *checks) require(ok bool, text string) {
	if !ok {
		*c = append(*c, errors.New(text))
	}
}

func (c *checks) err() error { return errors.Join(*c...) }
