package store

import "strings"

// text returns s as valid UTF-8 without NUL, which every database accepts.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// bytesOrNull returns b and NULL for an empty b.
func bytesOrNull(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

// jsonOrNull returns raw as text and NULL for nil.
func jsonOrNull(raw []byte) any {
	if raw == nil {
		return nil
	}
	return text(string(raw))
}
