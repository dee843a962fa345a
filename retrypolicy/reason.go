package retrypolicy

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"reprise/tasks"
)

// maxReason is the longest reason in bytes.
const maxReason = 500

// maxText bounds the part of an error text that is read, in bytes.
const maxText = 4096

var (
	urlText    = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://[^\s"'<>]+`)
	secretText = regexp.MustCompile(`(?i)([a-z0-9_.-]*(?:token|signature|sig|secret|password|passwd|credential|api_key|apikey|access_?key_?id|key-pair-id|policy)[a-z0-9_.-]*)=[^\s"'&]*`)
)

// reason returns "outcome: detail", safe for archive, logs and pages: one line of printable, valid UTF-8
// without queries of URLs, at most maxReason bytes.
func reason(o tasks.Outcome, detail string) string {
	return cut(join(string(o), clean(detail)), maxReason)
}

// Reason returns text with the outcome's name in front, unless it begins with it already, and safe for display
// as described at Classified.Reason.
func Reason(o tasks.Outcome, text string) string {
	rest, found := strings.CutPrefix(text, string(o))
	if found && (rest == "" || strings.HasPrefix(rest, ":")) {
		return reason(o, strings.TrimPrefix(rest, ":"))
	}
	return reason(o, text)
}

// withBudget appends the budget that ran out, which is never cut.
func withBudget(text, budget string) string {
	tail := "; " + budget
	return cut(text, maxReason-len(tail)) + tail
}

func join(head, tail string) string {
	if tail == "" {
		return head
	}
	return head + ": " + tail
}

// clean makes a text of another system safe to display.
func clean(s string) string {
	s = strings.ToValidUTF8(cut(s, maxText), "?")
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	s = urlText.ReplaceAllStringFunc(s, tasks.RedactURL)
	s = secretText.ReplaceAllString(s, "$1=…")
	return strings.Join(strings.Fields(s), " ")
}

// cut shortens s to at most limit bytes at a rune boundary.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// text returns the text of err, "" for nil.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
