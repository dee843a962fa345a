package store

import "strings"

// text returns s as valid UTF-8 without NUL bytes, because not every database accepts them.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// bytesOrNull returns b, or NULL if b is empty.
func bytesOrNull(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

// jsonOrNull returns raw as text, or NULL if raw is nil.
func jsonOrNull(raw []byte) any {
	if raw == nil {
		return nil
	}
	return text(string(raw))
}
