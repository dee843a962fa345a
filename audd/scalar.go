package audd

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// AudD sends codes and numbers as JSON numbers or as strings, and its providers' data in any type. The functions
// below accept all types and return no errors.

// isNull reports whether raw is missing or null.
func isNull(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// scalar returns the text of a string, number or boolean. It returns false for other types.
func scalar(raw json.RawMessage) (string, bool) {
	raw = bytes.TrimSpace(raw)
	if isNull(raw) || raw[0] == '{' || raw[0] == '[' {
		return "", false
	}
	if raw[0] != '"' {
		return string(raw), true
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// integer returns a whole number that AudD sent as a number (900, 900.0) or as a string.
func integer(raw json.RawMessage) (int64, bool) {
	s, _ := scalar(raw)
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// object returns the members of a JSON object, or nil for other types.
func object(raw json.RawMessage) map[string]json.RawMessage {
	var out map[string]json.RawMessage
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil
	}
	return out
}

// array returns the elements of a JSON array. It returns false for other types.
func array(raw json.RawMessage) ([]json.RawMessage, bool) {
	var out []json.RawMessage
	err := json.Unmarshal(raw, &out)
	return out, err == nil && out != nil
}
