package tasks

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// field is one parameter that is part of the key.
type field struct {
	name  string
	value func(Params) string // "" = AudD's default, not hashed
}

// keyFields lists the parameters that are part of the key, besides path and content. They change AudD's result.
// max_units only bounds cost, and the source of a recognition only routes the call, so the key does not contain them.
// An upload's source is part of its key, because a catalog slot belongs to an account. The defaults of skip, every and
// limit are those of AudD's own tools. A change of a row changes keys and testdata/keys.golden.
var keyFields = map[Path][]field{
	Recognize: {
		{"return", func(p Params) string { return strings.Join(sortedSet(p.Return), ",") }},
		{"market", func(p Params) string { return text(new(plain(p.Market)), "us") }},
		{"verifies", func(p Params) string { return text(p.Verifies, Verification{}) }},
	},
	Enterprise: {
		{"skip", func(p Params) string { return text(p.Skip, 0) }},
		{"every", func(p Params) string { return text(p.Every, 1) }},
		{"limit", func(p Params) string { return text(p.Limit, 0) }},
		{"skip_first_seconds", func(p Params) string { return text(&p.SkipFirstSeconds, 0) }},
		{"use_timecode", func(p Params) string { return text(&p.UseTimecode, false) }},
		{"accurate_offsets", func(p Params) string { return text(p.AccurateOffsets, true) }},
	},
	Upload: {
		{"source", func(p Params) string { return plain(p.Source) }},
		{"audio_id", func(p Params) string { return text(p.AudioID, -1) }},
	},
}

// keyText is base32 in lower case without padding.
var keyText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// keyDomain begins the hashed text, so no other hash of this module equals a key. Its number changes with the
// derivation.
const keyDomain = "reprise task key 1\n"

// Key returns the identity of the work, which is the asynq task id: "<path>_" and 52 lower-case base32 characters of a
// SHA-256 over path, content and parameters. It has no slash, because asynqmon cannot address ids with one.
//
// The content of a file is its SHA-256. The content of a clip is the SHA-256 of the original recording and the cut,
// because encoders produce different bytes for the same clip. The content of a URL is CanonicalURL. Each value is hashed
// with its name and length, so different values never produce the same text. A parameter at its default is not hashed.
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

// plain returns a name or hash trimmed and in lower case.
func plain(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// sortedSet returns the values in their plain form, sorted and without duplicates; nil if there are none.
func sortedSet(values []string) []string {
	var out []string
	for _, v := range values {
		if v = plain(v); v != "" {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// text returns a parameter as text, "" for nil and the default.
func text[T comparable](v *T, def T) string {
	if v == nil || *v == def {
		return ""
	}
	return fmt.Sprint(*v)
}
