package main

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"reprise/internal/cli"
)

// logger returns a log on standard error, as text or JSON. The format auto is text on a terminal.
func (a app) logger(format, level string) (*slog.Logger, error) {
	opts := &slog.HandlerOptions{ReplaceAttr: readableDurations}
	var errs []error
	var minimum slog.Level
	if err := minimum.UnmarshalText([]byte(level)); err != nil {
		errs = append(errs, fmt.Errorf("log.level %q: must be debug, info, warn or error", level))
	}
	opts.Level = minimum
	var handler slog.Handler = slog.NewJSONHandler(a.Err, opts)
	switch {
	case format == "text", format == "auto" && cli.Terminal(a.Err):
		handler = slog.NewTextHandler(a.Err, opts)
	case format != "json" && format != "auto":
		errs = append(errs, fmt.Errorf("log.format %q: must be auto, text or json", format))
	}
	return slog.New(handler), errors.Join(errs...)
}

// readableDurations writes durations as "5.27ms" instead of nanoseconds.
func readableDurations(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(rounded(a.Value.Duration()).String())
	}
	return a
}

// rounded returns d with three digits.
func rounded(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d.Abs()/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
