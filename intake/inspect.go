package intake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"unicode/utf8"

	"reprise/tasks"
)

// refusal is an error that is a sentence for people, without the input's name.
type refusal string

func (r refusal) Error() string { return string(r) }

var buffers = sync.Pool{New: func() any { b := make([]byte, 256<<10); return &b }}

// inspect looks at a file: is it there, readable, not empty, not too large for
// the path, audio or video by its content. It measures and hashes it. The
// error is a refusal or ctx's.
func inspect(ctx context.Context, path tasks.Path, name string) (tasks.Input, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return tasks.Input{}, refusal("has no absolute path: the working directory is gone")
	}
	if !utf8.ValidString(abs) {
		return tasks.Input{}, refusal("has a name that is not valid UTF-8, which no payload can carry: rename it")
	}
	info, err := os.Stat(abs) // before opening: a pipe would block
	if err != nil {
		return tasks.Input{}, refusal(openFailure(err))
	}
	if err := checkInfo(path, info, name); err != nil {
		return tasks.Input{}, err
	}
	f, err := os.Open(abs)
	if err != nil {
		return tasks.Input{}, refusal(openFailure(err))
	}
	defer f.Close()
	in := tasks.Input{Kind: tasks.FileInput, Path: abs, Size: info.Size()}
	format, err := sniff(f, info.Size())
	if err != nil {
		return tasks.Input{}, err
	}
	in.Seconds = duration(f, info.Size(), format)
	if in.SHA256, err = hash(ctx, f, info.Size()); err != nil {
		return tasks.Input{}, err
	}
	return in, nil
}

func checkInfo(path tasks.Path, info fs.FileInfo, name string) error {
	switch {
	case info.IsDir():
		return refusal("is a folder now")
	case !info.Mode().IsRegular():
		return refusal("is not a regular file")
	case info.Size() == 0:
		return refusal("is empty")
	case path == tasks.Recognize && info.Size() > MaxRecognizeBytes:
		return refusal(fmt.Sprintf("has %s, recognize takes up to 10 MiB: use `enqueue enterprise %s`", mebibytes(info.Size()), name))
	}
	return nil
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// hash reads the whole file in constant memory.
func hash(ctx context.Context, f *os.File, size int64) (string, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", refusal(openFailure(err))
	}
	buf := buffers.Get().(*[]byte) //nolint:forcetypeassert // its New makes nothing else
	defer buffers.Put(buf)
	h := sha256.New()
	// The wrapper hides File.WriteTo, which would ignore the buffer.
	n, err := io.CopyBuffer(h, &contextReader{ctx: ctx, r: f}, *buf)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", refusal(openFailure(err))
	case n != size:
		return "", refusal("changed while it was being read: try again when it is complete")
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// openFailure says why a file cannot be used.
func openFailure(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "may not be read: permission denied"
	case errors.Is(err, syscall.ELOOP):
		return "is a link that leads in a circle"
	case errors.Is(err, syscall.ENAMETOOLONG):
		return "has a name that is too long"
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return "cannot be read: " + path.Err.Error()
	}
	return "cannot be read: " + err.Error()
}
