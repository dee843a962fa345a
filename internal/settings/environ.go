package settings

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// others are variables that no command reads as a setting of its own: the
// folder of worker dev, the settings file and the folder that docker compose
// mounts.
var others = []string{"DATA", "CONFIG", "AUDIO"}

// kubernetes finds what it gives every container about a service that is named
// reprise, or reprise-redis: the variable and, because a setting may end alike,
// the address in it.
var kubernetes = regexp.MustCompile(`(^|_)(SERVICE_HOST=|SERVICE_PORT(_\w+)?=\d|PORT=\w+://|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?=)`)

// Getenv reads environ, as os.Environ gives it.
func Getenv(environ []string) func(string) string {
	return func(name string) string {
		for _, pair := range slices.Backward(environ) {
			if key, value, _ := strings.Cut(pair, "="); key == name {
				return value
			}
		}
		return ""
	}
}

// UnknownVariables is an error for every variable of environ that begins with
// REPRISE_ and is no setting of into, a struct as Load takes it: nobody reads
// it, so a slip of the pen would change nothing and say nothing. An empty one
// counts as not set. Names in also are known, too. shared is as Source.Shared.
func UnknownVariables(into any, environ []string, shared bool, also ...string) error {
	root, err := describe(into)
	if err != nil {
		return err
	}
	known := slices.Clone(others)
	for _, leaf := range root.leaves {
		known = append(known, strings.TrimPrefix(EnvName(leaf.key), EnvPrefix))
		if leaf.secret != "" {
			known = append(known, strings.TrimPrefix(EnvName(leaf.key+fileSuffix), EnvPrefix))
		}
	}
	var errs []error
	for _, pair := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(pair, "=")
		word, ours := strings.CutPrefix(name, EnvPrefix)
		if !ours || value == "" || kubernetes.MatchString(word+"="+value) || slices.Contains(known, word) || slices.Contains(also, name) {
			continue
		}
		if err := unknownVariable(root, name, nearest(word, known), shared); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func unknownVariable(root node, name, near string, shared bool) error {
	for _, key := range root.fileOnly {
		if strings.HasPrefix(name, EnvName(key)+"_") {
			return fmt.Errorf("%s: %s can stand in a settings file only (--config or %sCONFIG)", name, key, EnvPrefix)
		}
	}
	switch {
	case near != "":
		return fmt.Errorf("%s: unknown variable, did you mean %s%s?", name, EnvPrefix, near)
	case shared:
		return nil
	}
	return fmt.Errorf("%s: unknown variable: that of a setting is %s and its key with _ for dots", name, EnvPrefix)
}

// WithOrigin says, beside each key at the start of a line of err, where its
// value came from: what origin answers for a key, the name of a flag or
// variable, "" for a settings file or a default.
func WithOrigin(err error, origin func(key string) string) error {
	if err == nil {
		return nil
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		cut := strings.IndexAny(line, ": ")
		if cut <= 0 {
			continue
		}
		if name := origin(line[:cut]); name != "" {
			lines[i] = fmt.Sprintf("%s (%s)%s", line[:cut], name, line[cut:])
		}
	}
	return &told{text: strings.Join(lines, "\n"), err: err}
}

// told is an error with another text.
type told struct {
	text string
	err  error
}

func (e *told) Error() string { return e.text }
func (e *told) Unwrap() error { return e.err }
