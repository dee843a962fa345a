package ops

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"reprise/internal/text"
	"reprise/tasks"
)

// InputError means that the request has an unknown name or a value out of range. Nothing was changed.
type InputError struct{ err error }

func (e *InputError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.err }

func invalid(format string, args ...any) error { return &InputError{fmt.Errorf(format, args...)} }

// ErrNoLimits means that no worker has used this Redis yet.
var ErrNoLimits = errors.New("no worker has written its limits to this Redis yet: start one first")

// NotFoundError means that the store and the ledger do not have what was named.
type NotFoundError struct{ text string }

func (e *NotFoundError) Error() string { return e.text }

func unknown(format string, args ...any) error {
	return &NotFoundError{fmt.Sprintf("not found: "+format, args...)}
}

// among returns an InputError unless value is empty or in a closed set.
func among[T ~string](what string, value T, known []T) error {
	if value == "" || slices.Contains(known, value) {
		return nil
	}
	names := mapped(known, func(k T) string { return string(k) })
	return invalid("%s %s: expected one of %s%s", what, ShownName(string(value)), strings.Join(names, ", "), text.DidYouMean(string(value), names))
}

// ShownName returns a name for display, without control characters. A URL has no query, which may be a signature.
func ShownName(name string) string {
	if strings.Contains(name, "://") {
		return tasks.RedactURL(name)
	}
	return text.Printable(name)
}
