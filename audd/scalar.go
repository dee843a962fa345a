package audd

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// AudD sends codes and numbers as numbers or strings, and data of its providers
// in any type. These readers accept both and never fail.

// isNull reports whether the value is missing or null.
func isNull(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// scalar returns the text of a string, number or boolean; false for other types.
func scalar(raw json.RawMessage) (string, bool) {
	raw = bytes.TrimSpace(raw)
	if isNull(raw) {
		return "", false
	}
	switch raw[0] {
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return "", false
		}
		return s, true
	case '{', '[':
		return "", false
	default:
		return string(raw), true
	}
}

// number returns a finite number, sent as a number or string.
func number(raw json.RawMessage) (float64, bool) {
	s, ok := scalar(raw)
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return 0, false
	}
	return f, true
}

// integer returns a whole number, sent as a number (900, 900.0) or string.
func integer(raw json.RawMessage) (int64, bool) {
	s, ok := scalar(raw)
	if !ok {
		return 0, false
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64); err == nil {
		return n, true
	}
	f, ok := number(raw)
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// object returns the members of a JSON object, nil for other types.
func object(raw json.RawMessage) map[string]json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	var out map[string]json.RawMessage
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil
	}
	return out
}

// array returns the elements of a JSON array; false for other types.
func array(raw json.RawMessage) ([]json.RawMessage, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '[' {
		return nil, false
	}
	var out []json.RawMessage
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, false
	}
	return out, true
}
