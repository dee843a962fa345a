package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
)

// input is one argument, one line of a list or one row of a manifest: a file, a URL, or the reason why it is
// refused.
type input struct {
	name    string // for display
	path    string // of a file
	url     string
	refused string // "" = not refused so far

	// The rest comes from a manifest.
	at         Position
	audioID    *int64
	source     string
	externalID string
	metadata   json.RawMessage
}

// Position is the place of an input in a manifest. The zero value is for an input that is in no manifest.
type Position struct {
	Manifest string // as the user named it
	// Row counts from 1, without the header of a CSV and without empty lines; 0 is the header or the whole file.
	Row int
	// Line is the first line of the row, counted from 1.
	Line int
}

func (p Position) String() string {
	switch {
	case p.Manifest == "":
		return ""
	case p.Row == 0:
		return fmt.Sprintf("%s line %d", p.Manifest, p.Line)
	}
	return fmt.Sprintf("%s row %d (line %d)", p.Manifest, p.Row, p.Line)
}

// refusal is an error whose text is a sentence for the user, without the name of the input.
type refusal string

func (r refusal) Error() string { return string(r) }

// fileFailure returns the sentence for a file that cannot be used.
func fileFailure(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist"
	case errors.Is(err, syscall.ELOOP):
		return "is a symbolic link that points to itself"
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return "cannot be read: " + err.Error()
}

// contextReader fails with the error of its context after the context has ended.
type contextReader struct {
	ctx context.Context //nolint:containedctx // for one read loop; io.Reader takes no context
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
