package tasks

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Providers are the values AudD accepts in `return` today. napster left in
// 2026 (AudD Go and PHP READMEs).
var Providers = []string{"apple_music", "spotify", "deezer", "musicbrainz"}

// faults collects what is wrong, in a stable order. Its messages name fields
// and numbers but never quote text: a payload may hold a signed URL anywhere.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }

// Error is one line: it becomes part of an archive's reason.
func (f faults) Error() string {
	var b strings.Builder
	for i, err := range f {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(err.Error())
	}
	return b.String()
}

// Unwrap gives every fault on its own.
func (f faults) Unwrap() []error { return f }

// Validate reports every field of the payload that cannot be right, by name
// and always in the same order. It quotes no text of the payload.
func (p Payload) Validate() error {
	var f faults
	if p.Version != PayloadVersion {
		f.add("v %d: want %d", p.Version, PayloadVersion)
	}
	if !slices.Contains(Paths, p.Path) {
		f.add("path: want recognize, enterprise or upload")
	}
	p.Input.validate(&f)
	if p.MaxUnits < 0 {
		f.add("max_units %d: want 0 or more", p.MaxUnits)
	}
	p.Params.validate(p.Path, &f)
	if p.Params.UseTimecode && p.Input.Kind != URLInput {
		f.add("use_timecode: only a URL has a timecode")
	}
	if p.Input.Clip != "" && p.Path == Upload {
		f.add("input clip: an upload is a whole recording")
	}
	if p.Key != Key(p.Path, p.Input, p.Params) {
		f.add("key does not belong to the input and parameters")
	}
	if len(f) == 0 {
		return nil
	}
	return f
}

func (a Params) validate(path Path, f *faults) {
	if path != Recognize && len(a.Return) > 0 {
		f.add("return: only recognize has it")
	}
	if !slices.Equal(a.Return, sortedSet(a.Return)) {
		f.add("return: want lower-case names, sorted, each once")
	}
	if slices.ContainsFunc(a.Return, func(name string) bool { return !slices.Contains(Providers, name) }) {
		f.add("return: want only apple_music, spotify, deezer and musicbrainz")
	}
	if path != Recognize && a.Market != "" {
		f.add("market: only recognize has it")
	}
	if a.Market != "" && !isCountry(a.Market) {
		f.add("market: want a country code of two lower-case letters")
	}
	a.validateEnterprise(path, f)
	switch {
	case path == Upload && a.AudioID == nil:
		f.add("audio_id: an upload needs one")
	case path == Upload && *a.AudioID < 0:
		f.add("audio_id %d: want 0 or more", *a.AudioID)
	case path != Upload && a.AudioID != nil:
		f.add("audio_id: only upload has it")
	}
	if path == Upload && a.Source == "" {
		f.add("source: an upload is pinned to one")
	}
	if a.Source != plain(a.Source) {
		f.add("source: want a trimmed, lower-case name")
	}
}

func (a Params) validateEnterprise(path Path, f *faults) {
	for _, n := range []struct {
		name  string
		value *int
		least int
	}{{"skip", a.Skip, 0}, {"every", a.Every, 1}, {"limit", a.Limit, 1}} {
		if n.value == nil {
			continue
		}
		if path != Enterprise {
			f.add("%s: only enterprise has it", n.name)
		}
		if *n.value < n.least || *n.value > MaxChunks {
			f.add("%s %d: want %d to %d", n.name, *n.value, n.least, MaxChunks)
		}
	}
	if path != Enterprise && (a.SkipFirstSeconds != 0 || a.UseTimecode || a.AccurateOffsets != nil) {
		f.add("skip_first_seconds, use_timecode, accurate_offsets: only enterprise has them")
	}
	if a.SkipFirstSeconds < 0 || a.SkipFirstSeconds > MaxSeconds {
		f.add("skip_first_seconds %d: want 0 to %d", a.SkipFirstSeconds, MaxSeconds)
	}
	if a.SkipFirstSeconds > 0 && a.UseTimecode {
		f.add("skip_first_seconds and use_timecode exclude each other")
	}
}

func (in Input) validate(f *faults) {
	if in.Size < 0 || in.ExpiresAt < 0 {
		f.add("input: size and expires_at are 0 or more")
	}
	if !(in.Seconds >= 0 && in.Seconds <= MaxSeconds) {
		f.add("input seconds: want 0 to %d", MaxSeconds)
	}
	switch in.Kind {
	case URLInput:
		in.validateURL(f)
	case FileInput, SpoolInput:
		in.validateFile(f)
	default:
		f.add("input kind: want file, url or spool")
	}
}

func (in Input) validateURL(f *faults) {
	u, err := url.Parse(in.URL)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https"}, strings.ToLower(u.Scheme)) {
		f.add("input url: want an http or https URL")
	}
	if len(in.URL) > MaxURL || !utf8.ValidString(in.URL) {
		f.add("input url: want at most %d bytes of UTF-8", MaxURL)
	}
	if in.Path != "" || in.SHA256 != "" || in.Size != 0 || in.Clip != "" || in.OriginSHA256 != "" {
		f.add("input url: path, sha256, size and clip belong to files")
	}
}

func (in Input) validateFile(f *faults) {
	if in.Path == "" || len(in.Path) > MaxPath || !utf8.ValidString(in.Path) {
		f.add("input path: want 1 to %d bytes of UTF-8", MaxPath)
	}
	if in.URL != "" || in.ExpiresAt != 0 {
		f.add("input %s: url and expires_at belong to URLs", in.Kind)
	}
	if !isSHA256(in.SHA256) {
		f.add("input sha256: want 64 lower-case hex digits")
	}
	if (in.Clip == "") != (in.OriginSHA256 == "") {
		f.add("input clip and origin_sha256 belong together")
	}
	if in.OriginSHA256 != "" && !isSHA256(in.OriginSHA256) {
		f.add("input origin_sha256: want 64 lower-case hex digits")
	}
	if len(in.Clip) > MaxClip || in.Clip != plain(in.Clip) || strings.ContainsFunc(in.Clip, func(c rune) bool { return c <= ' ' || c > '~' }) {
		f.add("input clip: want at most %d printable lower-case characters", MaxClip)
	}
}

func isSHA256(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 32 && s == strings.ToLower(s)
}

func isCountry(s string) bool {
	return len(s) == 2 && s[0] >= 'a' && s[0] <= 'z' && s[1] >= 'a' && s[1] <= 'z'
}
