package intake

import (
	"bufio"
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
	sum := sha256.New()
	rest := bufio.NewReaderSize(io.TeeReader(&contextReader{ctx: ctx, r: f}, sum), readBuffer)
	length := measure(f, rest, info.Size(), format)
	if err := readAll(ctx, rest, f, info.Size()); err != nil {
		return tasks.Input{}, err
	}
	if length.known && length.seconds == 0 {
		return tasks.Input{}, refusal("contains no audio: it starts as " + format + ", but no sound follows")
	}
	in.Seconds, in.SHA256 = length.seconds, hex.EncodeToString(sum.Sum(nil))
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
		return refusal(fmt.Sprintf("is %.1f MiB, but the limit of recognize is 10 MiB: use `enqueue enterprise %s`",
			float64(info.Size())/(1<<20), name))
	}
	return nil
}

// readBuffer holds the largest page of an Ogg file.
const readBuffer = 128 << 10

// readAll reads what is left of a file in constant memory, and checks that the file has still the size.
func readAll(ctx context.Context, rest *bufio.Reader, f *os.File, size int64) error {
	_, err := io.Copy(io.Discard, rest)
	if err == nil {
		var at int64
		at, err = f.Seek(0, io.SeekCurrent)
		if err == nil && at != size {
			return refusal("changed while it was read: try again when it is complete")
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return refusal(fileFailure(err))
	}
	return nil
}
