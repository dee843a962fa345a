package store

import (
	"database/sql"
	"encoding/json"
	"strings"
	"time"
)

// text returns s as valid UTF-8 without NUL, which every database accepts.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func bytesOrNull(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

func jsonOrNull(raw json.RawMessage) any {
	if raw == nil {
		return nil
	}
	return text(string(raw))
}

func floatOrNull(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

func pointer(v sql.NullFloat64) *float64 {
	if !v.Valid {
		return nil
	}
	return &v.Float64
}

func raw(v sql.NullString) json.RawMessage {
	if !v.Valid {
		return nil
	}
	return json.RawMessage(v.String)
}

// instant is a time column: UTC, and the zero time for NULL.
func instant(v sql.NullInt64) time.Time {
	if !v.Valid {
		return time.Time{}
	}
	return time.UnixMilli(v.Int64).UTC()
}
