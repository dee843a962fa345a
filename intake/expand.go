package intake

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"reprise/tasks"
)

// maxListEntry is the longest entry, in bytes, of a list on standard input.
const maxListEntry = 1 << 20

// expansion collects the inputs that arguments stand for, in a stable order.
type expansion struct {
	out    []input
	walked map[string]bool // folders by their resolved path
}

// expand turns arguments into inputs: files, folders (recursively, sorted, without hidden entries), patterns that
// the shell did not expand, http and https URLs, and "-" for a list on stdin, which may be nil.
func expand(ctx context.Context, args []string, stdin io.Reader) ([]input, error) {
	e := &expansion{walked: map[string]bool{}}
	for _, arg := range args {
		var err error
		switch {
		case arg != "-":
			err = e.argument(ctx, arg)
		case stdin == nil:
			e.refuse("-", "the list on standard input can be read only once")
		default:
			err = e.list(ctx, stdin)
			stdin = nil
		}
		if err != nil {
			return nil, err
		}
	}
	return e.out, nil
}

func (e *expansion) refuse(name, reason string) {
	e.out = append(e.out, input{name: name, refused: reason})
}

// list reads arguments from r: one per line, or separated by NUL (find -print0). Blank lines and a byte order mark
// are skipped.
func (e *expansion) list(ctx context.Context, r io.Reader) error {
	br := bufio.NewReader(&contextReader{ctx: ctx, r: r})
	if mark, _ := br.Peek(3); bytes.Equal(mark, []byte(byteOrderMark)) {
		_, _ = br.Discard(3) // Peek has buffered them
	}
	scan := bufio.NewScanner(br)
	scan.Buffer(nil, maxListEntry)
	scan.Split(splitEntries)
	before := len(e.out)
	for scan.Scan() {
		if entry := bytes.TrimRight(scan.Bytes(), "\r"); len(bytes.TrimSpace(entry)) > 0 {
			if err := e.argument(ctx, string(entry)); err != nil {
				return err
			}
		}
	}
	switch err := scan.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		e.refuse("-", "the list on standard input has an entry longer than 1 MiB")
	case err != nil:
		return fmt.Errorf("read the list on standard input: %w", err)
	case len(e.out) == before:
		e.refuse("-", "the list on standard input is empty")
	}
	return nil
}

// splitEntries is a bufio.SplitFunc: an entry ends at a newline or a NUL.
func splitEntries(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexAny(data, "\n\x00"); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// argument adds the inputs of one argument. Its error is the error of ctx.
func (e *expansion) argument(ctx context.Context, arg string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch {
	case arg == "":
		e.refuse(`""`, "is an empty argument: name a file, a folder, a pattern or a URL")
		return nil
	case isURL(arg):
		e.out = append(e.out, input{name: tasks.RedactURL(arg), url: strings.TrimSpace(arg)})
		return nil
	}
	info, err := os.Stat(arg)
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case err == nil && info.IsDir():
		return e.folder(ctx, arg)
	case err == nil:
		e.out = append(e.out, input{name: arg, path: arg})
	case otherURL(arg):
		e.refuse(tasks.RedactURL(arg), "is a URL that AudD cannot fetch: only http and https work")
	case missing && strings.ContainsAny(arg, "*?["):
		return e.pattern(ctx, arg)
	default:
		e.refuse(arg, fileFailure(err))
	}
	return nil
}

func (e *expansion) pattern(ctx context.Context, pattern string) error {
	matches, err := filepath.Glob(pattern)
	switch {
	case err != nil:
		e.refuse(pattern, "is neither an existing file nor a valid pattern")
	case len(matches) == 0:
		e.refuse(pattern, "matches no file")
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
		e.refuse(dir, "is a folder without files (hidden files are ignored)")
	}
	return nil
}

// walk adds the files below dir. It follows symbolic links and walks each folder once, so links that form a loop end.
func (e *expansion) walk(ctx context.Context, dir string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err == nil {
		resolved, err = filepath.Abs(resolved)
	}
	var entries []os.DirEntry
	if err == nil && !e.walked[resolved] {
		e.walked[resolved] = true
		entries, err = os.ReadDir(dir)
	}
	if err != nil {
		e.refuse(dir, fileFailure(err))
		return nil
	}
	for _, entry := range entries { // sorted by ReadDir
		if hidden(entry.Name()) {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		isDir := entry.IsDir()
		if entry.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(path)
			if err != nil {
				e.refuse(path, fileFailure(err))
				continue
			}
			isDir = info.IsDir()
		}
		if !isDir {
			e.out = append(e.out, input{name: path, path: path})
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
