package audd

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// maxOffset bounds positions in a recording.
const maxOffset = 366 * 24 * time.Hour

// parseOffset reads the position of a chunk: "MM:SS", "HH:MM:SS", "SS" or a number
// of seconds. Minutes and seconds may exceed 59; seconds may have a fraction.
func parseOffset(raw json.RawMessage) (time.Duration, bool) {
	text, ok := scalar(raw)
	if !ok {
		return 0, false
	}
	parts := strings.Split(strings.TrimSpace(text), ":")
	if len(parts) > 3 {
		return 0, false
	}
	var total float64
	for i, part := range parts {
		if part == "" || strings.Trim(part, "0123456789.") != "" {
			return 0, false
		}
		n, err := strconv.ParseFloat(part, 64)
		if err != nil || (i < len(parts)-1 && strings.Contains(part, ".")) {
			return 0, false
		}
		total = total*60 + n
	}
	return seconds(total)
}

// milliseconds reads start_offset and end_offset.
func milliseconds(raw json.RawMessage) (time.Duration, bool) {
	n, ok := number(raw)
	if !ok {
		return 0, false
	}
	return seconds(n / 1000)
}

// seconds converts to whole milliseconds; false if out of bounds.
func seconds(n float64) (time.Duration, bool) {
	if n > maxOffset.Seconds() || n < -maxOffset.Seconds() {
		return 0, false
	}
	return time.Duration(n * float64(time.Second)).Round(time.Millisecond), true
}
