package retrypolicy

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"reprise/tasks"
)

// MaxReason is the longest reason in bytes.
const MaxReason = 500

// maxText bounds what is read of a foreign error text.
const maxText = 4096

var (
	urlText    = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://[^\s"'<>]+`)
	secretText = regexp.MustCompile(`(?i)([a-z0-9_.-]*(?:token|signature|sig|secret|password|passwd|credential|api_key|apikey|access_?key_?id|key-pair-id|policy)[a-z0-9_.-]*)=[^\s"'&]*`)
)

// reason is "outcome: detail" as archive, logs and pages may show it: one line
// of printable, valid UTF-8 without queries of URLs, at most MaxReason bytes.
func reason(o tasks.Outcome, detail string) string {
	return cut(join(string(o), clean(detail)), MaxReason)
}

// withOutcome puts the outcome's name in front unless it is there already.
func withOutcome(o tasks.Outcome, text string) string {
	rest, found := strings.CutPrefix(text, string(o))
	if found && (rest == "" || strings.HasPrefix(rest, ":")) {
		return reason(o, strings.TrimPrefix(rest, ":"))
	}
	return reason(o, text)
}

// withBudget ends a reason with the budget that ran out, which is never cut.
func withBudget(text, budget string) string {
	tail := "; " + budget
	return cut(text, MaxReason-len(tail)) + tail
}

func join(head, tail string) string {
	if tail == "" {
		return head
	}
	return head + ": " + tail
}

// clean makes foreign text safe to show.
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

// cut shortens to at most limit bytes without splitting a rune.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// text is an error's text, "" for none.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
