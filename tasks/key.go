package tasks

import (
	"crypto/sha256"
	"encoding/base32"
	"sort"
	"strconv"
	"strings"
)

// field is one parameter that is part of a key.
type field struct {
	name  string
	value func(Params) string // "" = AudD's default, left out of the key
}

// keyFields is the table of what makes two tasks the same work, beside the
// path and the content. A parameter that changes what AudD answers belongs
// here; one that only bounds cost (max_units) or routes a call (the source of
// a recognition) does not. The defaults of skip, every and limit are those
// AudD's own tools calculate with. An upload's slot belongs to an account, so
// there the source counts. Changing a row changes keys: testdata/keys.golden
// must then change in the same commit.
var keyFields = map[Path][]field{
	Recognize: {
		{"return", func(p Params) string { return strings.Join(sortedSet(p.Return), ",") }},
		{"market", func(p Params) string { return defaulted(p.Market, "us") }},
	},
	Enterprise: {
		{"skip", func(p Params) string { return number(p.Skip, 0) }},
		{"every", func(p Params) string { return number(p.Every, 1) }},
		{"limit", func(p Params) string { return number(p.Limit, 0) }},
		{"skip_first_seconds", func(p Params) string { return number(&p.SkipFirstSeconds, 0) }},
		{"use_timecode", func(p Params) string { return truth(p.UseTimecode, false) }},
		{"accurate_offsets", func(p Params) string { return truth(p.AccurateOffsets == nil || *p.AccurateOffsets, true) }},
	},
	Upload: {
		{"source", func(p Params) string { return plain(p.Source) }},
		{"audio_id", func(p Params) string { return audioID(p.AudioID) }},
	},
}

// keyText writes a key's hash: base32 in lower case, without padding.
var keyText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// keyDomain begins what is hashed, so that no other hash of this module can
// ever equal a key. Its number rises if the derivation itself changes.
const keyDomain = "reprise task key 1\n"

// Key is the identity of the work and the asynq task id:
// "<path>_" + base32(sha256(path, content, parameters)), 52 lower-case
// characters, no slash (asynqmon cannot address ids with one).
//
// The content is the SHA-256 of the audio; for a clip, that of the recording
// it was cut from and how it was cut, because another encoder makes other
// bytes of the same clip; for a URL, the URL without its signature. Every
// value is hashed with its name and length, so that no two different lists of
// values look the same. A parameter at its default is left out: saying what
// goes without saying does not make it other work.
func Key(path Path, in Input, params Params) string {
	hashed := make([]byte, 0, 256)
	line := func(name, value string) {
		hashed = append(append(hashed, name...), '=')
		hashed = append(strconv.AppendInt(hashed, int64(len(value)), 10), ':')
		hashed = append(append(hashed, value...), '\n')
	}
	hashed = append(hashed, keyDomain...)
	line("path", string(path))
	switch {
	case in.Kind == URLInput:
		line("url", CanonicalURL(in.URL))
	case in.Clip != "":
		line("sha256", plain(in.OriginSHA256))
		line("clip", plain(in.Clip))
	default:
		line("sha256", plain(in.SHA256))
	}
	for _, f := range keyFields[path] {
		if v := f.value(params); v != "" {
			line(f.name, v)
		}
	}
	sum := sha256.Sum256(hashed)
	return string(path) + "_" + keyText.EncodeToString(sum[:])
}

// plain is how names and hashes are compared: trimmed and in lower case.
func plain(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

func sortedSet(values []string) []string {
	if len(values) == 0 {
		return nil
	}
	seen := map[string]bool{}
	var out []string
	for _, v := range values {
		v = plain(v)
		if v != "" && !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	sort.Strings(out)
	return out
}

func defaulted(v, def string) string {
	if v = plain(v); v == def {
		return ""
	}
	return v
}

func number(v *int, def int) string {
	if v == nil || *v == def {
		return ""
	}
	return strconv.Itoa(*v)
}

func truth(v, def bool) string {
	if v == def {
		return ""
	}
	return strconv.FormatBool(v)
}

func audioID(v *int64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatInt(*v, 10)
}
