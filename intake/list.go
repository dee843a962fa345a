package intake

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// maxListEntry bounds one entry of a list on standard input.
const maxListEntry = 1 << 20

// list reads inputs from r: one a line, or separated by NUL (find -print0).
// Blank lines are skipped, and so is a byte order mark.
func (e *expansion) list(ctx context.Context, r io.Reader) error {
	br := bufio.NewReader(&contextReader{ctx: ctx, r: r})
	if mark, _ := br.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = br.Discard(3) // just peeked at
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

// splitEntries ends an entry at a newline or a NUL, whichever comes first.
func splitEntries(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexAny(data, "\n\x00"); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// contextReader ends a copy when its context does.
type contextReader struct {
	ctx context.Context //nolint:containedctx // of one copy; io.Reader takes none
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
