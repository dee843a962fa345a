package retrypolicy

import (
	"strings"

	"reprise/tasks"
)

// Codes of AudD whose meaning depends on more than the number.
const (
	codeCatchAll    = 19  // abuse, an address, or maintenance: may pass
	codeNoAudio     = 501 // not in AudD's OpenAPI enum, seen on enterprise links
	codeUnreachable = 600 // AudD could not download the URL
	codeStreamLimit = 611 // a daily limit
	codeNotReleased = 907
)

// codes maps AudD's error codes; a code that is not here is unknown (40 has no
// documented meaning, 610 belongs to streams).
var codes = map[int]tasks.Outcome{
	codeCatchAll: tasks.Blocked, 20: tasks.Blocked, 31337: tasks.Blocked,
	50: tasks.InvalidRequest, 51: tasks.InvalidRequest, // 51 with a result is no error
	100: tasks.Unavailable,
	300: tasks.InvalidAudio, 400: tasks.InvalidAudio, 500: tasks.InvalidAudio,
	codeNoAudio:     tasks.InvalidAudio,     // of a URL: input_gone
	codeUnreachable: tasks.InputUnreachable, // by its message: input_gone, link_expired
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

// ofCode is the outcome of an AudD code. The HTTP status has no say: AudD sends
// its codes with 200, so any other status beside one is a proxy's.
func ofCode(code int, message string, a CallResult) tasks.Outcome {
	outcome, known := codes[code]
	if !known {
		return tasks.Unknown
	}
	switch {
	case code == codeNotReleased && a.Path == tasks.Upload:
		return tasks.Unknown // about a song found, so no answer to an upload: never call that done
	case code == codeNoAudio || code == codeUnreachable:
		if gone, told := ofGoneText(message, a.URLSigned); told {
			return gone
		}
		if code == codeNoAudio && a.InputKind == tasks.URLInput {
			return tasks.InputGone
		}
	}
	return outcome
}

// goneTexts are what AudD's message says when the audio is no longer at its
// origin, in the order they are tested: a message that offers both reasons
// ("expired or was deleted") is about the audio, not about the link.
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

// ofGoneText reads a message. "expired" about a signed URL means its
// signature: a fresh link would work, so that is no tombstone.
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

// statuses maps HTTP statuses of answers without an AudD code, first hit wins.
// 403 is decided by its body (ofStatus).
var statuses = []struct {
	from, to int
	outcome  tasks.Outcome
}{
	{100, 299, tasks.Ambiguous}, // it may have been worked on, and cannot be read
	{300, 399, tasks.NotFound},  // a redirect would drop or repeat the body: a wrong base URL
	{400, 400, tasks.InvalidRequest},
	{401, 401, tasks.Authentication},
	{404, 404, tasks.NotFound},
	{408, 408, tasks.Unavailable},
	{413, 415, tasks.InvalidRequest},
	{429, 429, tasks.Throttled},
	{400, 499, tasks.Unknown},
	{500, 599, tasks.Unavailable},
}

// ofStatus is the outcome of an answer without an AudD code. A status outside
// 100–599 is as unreadable as a broken body.
func ofStatus(status int, json bool) (outcome tasks.Outcome, probeable bool) {
	if status == 403 {
		if json {
			return tasks.Authentication, false
		}
		return tasks.Blocked, true // an edge's page: an address or maintenance
	}
	for _, s := range statuses {
		if s.from <= status && status <= s.to {
			return s.outcome, false
		}
	}
	return tasks.Ambiguous, false
}
