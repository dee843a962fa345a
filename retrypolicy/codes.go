package retrypolicy

import (
	"strings"

	"reprise/tasks"
)

// The AudD codes that need more than the table below.
const (
	codeCatchAll    = 19  // abuse, a blocked address, or maintenance: may end by itself
	codeNoAudio     = 501 // not in AudD's OpenAPI enum, seen on enterprise links
	codeUnreachable = 600 // AudD could not download the URL
	codeStreamLimit = 611 // a daily limit; its wait is streamLimitWait in waits.go
	codeNotReleased = 907
)

// codes maps AudD's error codes to outcomes. Codes that are left out are unknown: 40 has no documented meaning,
// 610 belongs to streams.
var codes = map[int]tasks.Outcome{
	codeCatchAll: tasks.Blocked, 20: tasks.Blocked, 31337: tasks.Blocked,
	50: tasks.InvalidRequest, 51: tasks.InvalidRequest, // 51 with a result is a success
	100: tasks.Unavailable,
	300: tasks.InvalidAudio, 400: tasks.InvalidAudio, 500: tasks.InvalidAudio,
	codeNoAudio:     tasks.InvalidAudio,     // input_gone for a URL
	codeUnreachable: tasks.InputUnreachable, // input_gone or link_expired by its message
	601:             tasks.InvalidRequest, 602: tasks.InvalidRequest,
	codeStreamLimit: tasks.Throttled,
	700:             tasks.InvalidRequest, 701: tasks.InvalidRequest, 702: tasks.InvalidRequest,
	900: tasks.Authentication, 901: tasks.Authentication, 903: tasks.Authentication,
	902: tasks.Quota,
	904: tasks.Subscription, 905: tasks.Subscription,
	906:             tasks.InvalidRequest,
	codeNotReleased: tasks.NotReleased,
	1000:            tasks.InvalidRequest,
}

// ofCode returns the outcome of an AudD code. The HTTP status does not matter: AudD sends its codes with 200, and
// another status comes from a proxy.
func ofCode(code int, message string, a CallResult) tasks.Outcome {
	outcome, known := codes[code]
	if !known {
		return tasks.Unknown
	}
	switch {
	case code == codeNotReleased && a.Path == tasks.Upload:
		return tasks.Unknown // 907 is about a recognised song and proves nothing about an upload
	case code == codeNoAudio || code == codeUnreachable:
		if gone, found := ofGoneText(message, a.URLSigned); found {
			return gone
		}
		if code == codeNoAudio && a.InputKind == tasks.URLInput {
			return tasks.InputGone
		}
	}
	return outcome
}

// goneTexts are the phrases in AudD's message for audio that no longer exists, in the order in which they are
// tested. A message with two reasons ("expired or was deleted") is about the audio, not the link.
var goneTexts = []struct {
	text    string // lower case
	deleted bool
}{
	{"deleted", true},
	{"no longer available", true},
	{"no longer exists", true},
	{"taken down", true},
	{"expired", false},
}

// ofGoneText returns the outcome of a message. For a signed URL "expired" is about the signature: a new link
// works, so the task gets no tombstone.
func ofGoneText(message string, signed bool) (tasks.Outcome, bool) {
	message = strings.ToLower(message)
	for _, g := range goneTexts {
		if !strings.Contains(message, g.text) {
			continue
		}
		if !g.deleted && signed {
			return tasks.LinkExpired, true
		}
		return tasks.InputGone, true
	}
	return "", false
}

// statuses maps HTTP statuses of responses without an AudD code to outcomes; the first match counts. ofStatus
// handles 403.
var statuses = []struct {
	from, to int
	outcome  tasks.Outcome
}{
	{100, 299, tasks.Ambiguous}, // unreadable, possibly processed
	{300, 399, tasks.NotFound},  // the base URL is wrong; following a redirect would send the body again
	{400, 400, tasks.InvalidRequest},
	{401, 401, tasks.Authentication},
	{404, 404, tasks.NotFound},
	{408, 408, tasks.Unavailable},
	{413, 415, tasks.InvalidRequest},
	{429, 429, tasks.Throttled},
	{400, 499, tasks.Unknown},
	{500, 599, tasks.Unavailable},
}

// ofStatus returns the outcome of a response without an AudD code. A status outside 100–599 counts as an
// unreadable response.
func ofStatus(status int, json bool) (outcome tasks.Outcome, probeable bool) {
	if status == 403 {
		if json {
			return tasks.Authentication, false
		}
		return tasks.Blocked, true // a page of a proxy: a blocked address or maintenance
	}
	for _, s := range statuses {
		if s.from <= status && status <= s.to {
			return s.outcome, false
		}
	}
	return tasks.Ambiguous, false
}
