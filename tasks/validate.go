package tasks

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
)

// Providers are the values AudD accepts in `return` today. napster left in
// 2026 (AudD Go and PHP READMEs).
var Providers = []string{"apple_music", "spotify", "deezer", "musicbrainz"}

// Validate reports every field of the payload that cannot be right, by name.
// It never quotes a URL's query.
func (p Payload) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if _, err := ParsePath(string(p.Path)); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, p.Input.validate()...)
	if p.MaxUnits < 0 {
		bad("max_units %d: want 0 or more", p.MaxUnits)
	}
	if want := Key(p.Path, p.Input, p.Params); p.Key != want {
		bad("key does not belong to the input and parameters")
	}
	a := p.Params
	for _, name := range sortedSet(a.Return) {
		if !slices.Contains(Providers, name) {
			bad("return %q: want apple_music, spotify, deezer or musicbrainz", name)
		}
	}
	if p.Path != Recognize && len(a.Return) > 0 {
		bad("return: only recognize has it")
	}
	for name, v := range map[string]*int{"skip": a.Skip, "every": a.Every, "limit": a.Limit} {
		if v == nil {
			continue
		}
		if p.Path != Enterprise {
			bad("%s: only enterprise has it", name)
		} else if *v < 0 || (name != "skip" && *v < 1) {
			bad("%s %d: out of range", name, *v)
		}
	}
	if a.SkipFirstSeconds < 0 {
		bad("skip_first_seconds %d: want 0 or more", a.SkipFirstSeconds)
	}
	if a.SkipFirstSeconds > 0 && a.UseTimecode {
		bad("skip_first_seconds and use_timecode exclude each other")
	}
	switch {
	case p.Path == Upload && a.AudioID == nil:
		bad("audio_id: an upload needs one")
	case p.Path == Upload && *a.AudioID < 0:
		bad("audio_id %d: want 0 or more", *a.AudioID)
	case p.Path != Upload && a.AudioID != nil:
		bad("audio_id: only upload has it")
	}
	if p.Path == Upload && a.Source == "" {
		bad("source: an upload is pinned to one")
	}
	return errors.Join(errs...)
}

func (in Input) validate() []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if in.Size < 0 || in.Seconds < 0 || in.ExpiresAt < 0 {
		bad("input: size, seconds and expires_at are 0 or more")
	}
	switch in.Kind {
	case URLInput:
		u, err := url.Parse(in.URL)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			bad("input url: want an http or https URL")
		}
		if in.Path != "" {
			bad("input: url and path exclude each other")
		}
	case FileInput, SpoolInput:
		if in.Path == "" || in.URL != "" {
			bad("input %s: want a path and no url", in.Kind)
		}
		if raw, err := hex.DecodeString(in.SHA256); err != nil || len(raw) != 32 {
			bad("input sha256: want 64 hex digits")
		}
	default:
		bad("input kind %q: want file, url or spool", in.Kind)
	}
	return errs
}
