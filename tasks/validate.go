package tasks

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Providers lists the values that AudD accepts in `return`. AudD removed napster in 2026 (AudD Go and PHP READMEs).
var Providers = []string{"apple_music", "spotify", "deezer", "musicbrainz"}

// faults collects validation errors in a stable order. The messages name fields and numbers and quote no text, because
// any text may be a signed URL.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }

// Error returns one line, because it becomes part of an archive reason.
func (f faults) Error() string {
	return strings.ReplaceAll(errors.Join(f...).Error(), "\n", "; ")
}

// Unwrap returns the single errors.
func (f faults) Unwrap() []error { return f }

// Validate reports every invalid field of the payload by name, in a stable order. It quotes no text of the payload.
func (p Payload) Validate() error {
	var f faults
	if p.Version != PayloadVersion {
		f.add("v %d: must be %d", p.Version, PayloadVersion)
	}
	if !slices.Contains(Paths, p.Path) {
		f.add("path: must be recognize, enterprise or upload")
	}
	p.Input.validate(&f)
	if p.MaxUnits < 0 {
		f.add("max_units %d: must be 0 or more", p.MaxUnits)
	}
	p.Params.validate(p.Path, &f)
	if p.Params.UseTimecode && p.Input.Kind != URLInput {
		f.add("use_timecode: only for a URL")
	}
	if p.Input.Clip != "" && p.Path == Upload {
		f.add("input clip: not for an upload")
	}
	if p.Key != Key(p.Path, p.Input, p.Params) {
		f.add("key does not match the input and parameters")
	}
	if len(f) == 0 {
		return nil
	}
	return f
}

func (a Params) validate(path Path, f *faults) {
	if path != Recognize && len(a.Return) > 0 {
		f.add("return: only for recognize")
	}
	if !slices.Equal(a.Return, sortedSet(a.Return)) {
		f.add("return: must be lower-case names, sorted, without duplicates")
	}
	if slices.ContainsFunc(a.Return, func(name string) bool { return !slices.Contains(Providers, name) }) {
		f.add("return: must be among apple_music, spotify, deezer and musicbrainz")
	}
	if path != Recognize && a.Market != "" {
		f.add("market: only for recognize")
	}
	if a.Market != "" && !isCountry(a.Market) {
		f.add("market: must be a country code of two lower-case letters")
	}
	a.validateEnterprise(path, f)
	switch {
	case path == Upload && a.AudioID == nil:
		f.add("audio_id: required for upload")
	case path == Upload && *a.AudioID < 0:
		f.add("audio_id %d: must be 0 or more", *a.AudioID)
	case path != Upload && a.AudioID != nil:
		f.add("audio_id: only for upload")
	}
	if path == Upload && a.Source == "" {
		f.add("source: required for upload")
	}
	if v := a.Verifies; v != nil && (path != Recognize || a.Source == "" || v.Generation < 0 || v.Try < 1 || !strings.HasPrefix(v.Key, string(Upload)+"_")) {
		f.add("verifies: only for a recognition that is pinned to a source")
	}
	if a.Source != plain(a.Source) {
		f.add("source: must be a trimmed, lower-case name")
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
			f.add("%s: only for enterprise", n.name)
		}
		if *n.value < n.least || *n.value > MaxChunks {
			f.add("%s %d: must be %d to %d", n.name, *n.value, n.least, MaxChunks)
		}
	}
	if path != Enterprise && (a.SkipFirstSeconds != 0 || a.UseTimecode || a.AccurateOffsets != nil) {
		f.add("skip_first_seconds, use_timecode, accurate_offsets: only for enterprise")
	}
	if a.SkipFirstSeconds < 0 || a.SkipFirstSeconds > MaxSeconds {
		f.add("skip_first_seconds %d: must be 0 to %d", a.SkipFirstSeconds, MaxSeconds)
	}
	if a.SkipFirstSeconds > 0 && a.UseTimecode {
		f.add("skip_first_seconds and use_timecode cannot be combined")
	}
}

func (in Input) validate(f *faults) {
	if in.Size < 0 || in.ExpiresAt < 0 {
		f.add("input: size and expires_at must be 0 or more")
	}
	if !(in.Seconds >= 0 && in.Seconds <= MaxSeconds) {
		f.add("input seconds: must be 0 to %d", MaxSeconds)
	}
	switch in.Kind {
	case URLInput:
		in.validateURL(f)
	case FileInput, SpoolInput:
		in.validateFile(f)
	default:
		f.add("input kind: must be file, url or spool")
	}
}

func (in Input) validateURL(f *faults) {
	u, err := url.Parse(in.URL)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https"}, strings.ToLower(u.Scheme)) {
		f.add("input url: must be an http or https URL")
	}
	if len(in.URL) > MaxURL || !utf8.ValidString(in.URL) {
		f.add("input url: must be at most %d bytes of UTF-8", MaxURL)
	}
	if in.Path != "" || in.SHA256 != "" || in.Size != 0 || in.Clip != "" || in.OriginSHA256 != "" {
		f.add("input url: path, sha256, size and clip are only for files")
	}
}

func (in Input) validateFile(f *faults) {
	if in.Path == "" || len(in.Path) > MaxPath || !utf8.ValidString(in.Path) {
		f.add("input path: must be 1 to %d bytes of UTF-8", MaxPath)
	}
	if in.URL != "" || in.ExpiresAt != 0 {
		f.add("input %s: url and expires_at are only for URLs", in.Kind)
	}
	if !isSHA256(in.SHA256) {
		f.add("input sha256: must be 64 lower-case hex digits")
	}
	if (in.Clip == "") != (in.OriginSHA256 == "") {
		f.add("input clip and origin_sha256 must be set together")
	}
	if in.OriginSHA256 != "" && !isSHA256(in.OriginSHA256) {
		f.add("input origin_sha256: must be 64 lower-case hex digits")
	}
	if len(in.Clip) > MaxClip || in.Clip != plain(in.Clip) || strings.ContainsFunc(in.Clip, func(c rune) bool { return c <= ' ' || c > '~' }) {
		f.add("input clip: must be at most %d printable lower-case characters", MaxClip)
	}
}

func isSHA256(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 32 && s == strings.ToLower(s)
}

func isCountry(s string) bool {
	return len(s) == 2 && s[0] >= 'a' && s[0] <= 'z' && s[1] >= 'a' && s[1] <= 'z'
}
