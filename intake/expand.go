package intake

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// found is an input after expansion: a path, a URL, or why it is neither; from
// a manifest also what that says of it.
type found struct {
	name    string // as shown
	path    string // "" for URLs and refusals
	url     string
	refusal string

	at         Position
	audioID    *int64
	source     string
	externalID string
	metadata   json.RawMessage
}

// expansion collects what arguments stand for, in a stable order.
type expansion struct {
	out  []found
	real map[string]bool // folders being or done walked, by real path
}

// expand turns arguments into inputs: files, folders (recursively, sorted,
// without hidden entries), globs the shell did not expand, http and https URLs.
func (in *Intake) expand(ctx context.Context, args []string) ([]found, error) {
	e := &expansion{real: map[string]bool{}}
	stdinUsed := false
	for _, arg := range args {
		if arg != "-" {
			if err := e.argument(ctx, arg); err != nil {
				return nil, err
			}
			continue
		}
		if stdinUsed || in.opts.Stdin == nil {
			e.refuse("-", "the list on standard input can be read once only")
			continue
		}
		stdinUsed = true
		if err := e.list(ctx, in.opts.Stdin); err != nil {
			return nil, err
		}
	}
	return e.out, nil
}

func (e *expansion) refuse(name, reason string) {
	e.out = append(e.out, found{name: name, refusal: reason})
}

// argument returns an error only when ctx has ended.
func (e *expansion) argument(ctx context.Context, arg string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch {
	case arg == "":
		e.refuse(`""`, "is an empty name")
		return nil
	case isURL(arg):
		e.out = append(e.out, found{name: shownURL(arg), url: arg})
		return nil
	}
	info, err := os.Stat(arg)
	switch {
	case err == nil && info.IsDir():
		return e.folder(ctx, arg)
	case err == nil:
		e.out = append(e.out, found{name: arg, path: arg})
		return nil
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(arg, "*?[") && !otherURL(arg):
		return e.glob(ctx, arg)
	}
	if errors.Is(err, fs.ErrNotExist) && otherURL(arg) {
		e.refuse(shownURL(arg), onlyHTTP)
		return nil
	}
	e.refuse(arg, openFailure(err))
	return nil
}

func (e *expansion) glob(ctx context.Context, pattern string) error {
	matches, err := filepath.Glob(pattern)
	if err != nil {
		e.refuse(pattern, "is neither a file nor a pattern that can be read")
		return nil //nolint:nilerr // refuse noted it
	}
	if len(matches) == 0 {
		e.refuse(pattern, "matches no file")
		return nil
	}
	for _, m := range matches { // sorted by Glob
		if hidden(m) && !hidden(pattern) {
			continue
		}
		if err := e.argument(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func (e *expansion) folder(ctx context.Context, dir string) error {
	before := len(e.out)
	if err := e.walk(ctx, dir); err != nil {
		return err
	}
	if len(e.out) == before {
		e.refuse(dir, "is a folder without any file that is not hidden")
	}
	return nil
}

// walk adds the files below dir. Links are followed; a folder that was walked
// before, by whatever name, is not walked again, so loops end.
func (e *expansion) walk(ctx context.Context, dir string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err == nil {
		resolved, err = filepath.Abs(resolved)
	}
	if err != nil {
		e.refuse(dir, openFailure(err))
		return nil
	}
	if e.real[resolved] {
		return nil
	}
	e.real[resolved] = true
	entries, err := os.ReadDir(dir)
	if err != nil {
		e.refuse(dir, openFailure(err))
		return nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, entry := range entries {
		if hidden(entry.Name()) {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		isDir := entry.IsDir()
		if entry.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(path)
			if err != nil {
				e.refuse(path, openFailure(err))
				continue
			}
			isDir = info.IsDir()
		}
		if !isDir {
			e.out = append(e.out, found{name: path, path: path})
			continue
		}
		if err := e.walk(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

func hidden(path string) bool {
	base := filepath.Base(path)
	return strings.HasPrefix(base, ".") && base != "." && base != ".."
}
