package audd

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// AudD sends codes and numbers as numbers or as strings, and its providers'
// data in any type. These readers take what they can and never fail.

// isNull reports a missing value or a JSON null.
func isNull(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// scalar is the text of a string, number or boolean; false for anything else.
func scalar(raw json.RawMessage) (string, bool) {
	raw = bytes.TrimSpace(raw)
	if isNull(raw) {
		return "", false
	}
	switch raw[0] {
	case '"':
		if end := len(raw) - 1; end > 0 && raw[end] == '"' && !bytes.ContainsAny(raw[1:end], "\"\\") && utf8.Valid(raw) {
			return string(raw[1:end]), true // nothing is escaped
		}
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

// number is a finite number, given as a number or in a string.
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

// integer is a whole number, given as a number ("900", 900.0) or in a string.
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

// boolean reads true, "true", 1, "1".
func boolean(raw json.RawMessage) (bool, bool) {
	s, ok := scalar(raw)
	if !ok {
		return false, false
	}
	b, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(s)))
	return b, err == nil
}

// object is the members of a JSON object, nil for anything else.
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

// array is the elements of a JSON array; false for anything else.
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
