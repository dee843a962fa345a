package intake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"reprise/tasks"
)

// MaxRecognizeBytes is the largest file AudD's standard endpoint takes: 10 MiB.
const MaxRecognizeBytes = 10 << 20

// readFile checks that a file is readable, not empty, not too large for the path, and audio or video by its
// content; it measures and hashes it. The error is a refusal or that of ctx.
func readFile(ctx context.Context, path tasks.Path, name string) (tasks.Input, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return tasks.Input{}, refusal("has no absolute path: the working directory no longer exists")
	}
	if !utf8.ValidString(abs) {
		return tasks.Input{}, refusal("has a path that is not valid UTF-8, which a task cannot hold: rename the file")
	}
	info, err := os.Stat(abs) // before opening, because opening a pipe blocks
	if err != nil {
		return tasks.Input{}, refusal(fileFailure(err))
	}
	if err := checkInfo(path, info, name); err != nil {
		return tasks.Input{}, err
	}
	f, err := os.Open(abs)
	if err != nil {
		return tasks.Input{}, refusal(fileFailure(err))
	}
	defer f.Close()
	in := tasks.Input{Kind: tasks.FileInput, Path: abs, Size: info.Size()}
	format, err := detectFormat(f, info.Size())
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
		return refusal("is a folder, not a file")
	case !info.Mode().IsRegular():
		return refusal("is not a regular file")
	case info.Size() == 0:
		return refusal("is empty")
	case path == tasks.Recognize && info.Size() > MaxRecognizeBytes:
		return refusal(fmt.Sprintf("has %.1f MiB, but recognize takes at most 10 MiB: use `enqueue enterprise %s`",
			float64(info.Size())/(1<<20), name))
	}
	return nil
}

// hash reads the whole file in constant memory. f is at its start.
func hash(ctx context.Context, f *os.File, size int64) (string, error) {
	h := sha256.New()
	n, err := io.Copy(h, &contextReader{ctx: ctx, r: f})
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", refusal(fileFailure(err))
	case n != size:
		return "", refusal("changed while it was read: try again when it is complete")
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
