package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"reprise/audd"
	"reprise/retrypolicy"
	"reprise/tasks"
)

// verifyBytes is the most of a recording that is sent to verify its upload, in bytes: AudD takes 10 MiB and
// analyses only the first 12 s.
const verifyBytes = 10<<20 - 64<<10

// input opens the audio of a task and checks that it is the audio that was enqueued. Size and SHA-256 are
// compared on the open file before a byte is sent, so that no call is billed for other content.
type input struct {
	spec  tasks.Input
	limit int64 // bytes of the file to send; 0 = all
	file  *os.File
}

func (in *input) audio() audd.Audio {
	if in.spec.Kind == tasks.URLInput {
		return audd.Audio{URL: in.spec.URL}
	}
	return audd.Audio{Name: filepath.Base(in.spec.Path), Open: in.open}
}

func (in *input) open() (io.ReadCloser, int64, error) {
	if in.file == nil {
		f, err := os.Open(in.spec.Path)
		if err != nil {
			return nil, 0, fmt.Errorf("open the audio: %w", err)
		}
		in.file = f
		if err := in.check(); err != nil {
			return nil, 0, err
		}
	}
	size := in.spec.Size
	if in.limit > 0 {
		size = min(size, in.limit)
	}
	return io.NopCloser(io.NewSectionReader(in.file, 0, size)), size, nil
}

func (in *input) check() error {
	info, err := in.file.Stat()
	if err != nil {
		return fmt.Errorf("read the size of the audio: %w", err)
	}
	if info.Size() != in.spec.Size {
		return fmt.Errorf("the file is %d bytes, but was %d bytes when enqueued: %w", info.Size(), in.spec.Size, retrypolicy.ErrInputChanged)
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(in.file, 0, in.spec.Size)); err != nil {
		return fmt.Errorf("read the audio: %w", err)
	}
	if hex.EncodeToString(h.Sum(nil)) != in.spec.SHA256 {
		return fmt.Errorf("the file's content changed after it was enqueued: %w", retrypolicy.ErrInputChanged)
	}
	return nil
}

func (in *input) close() {
	if in.file != nil {
		_ = in.file.Close() // it was only read
	}
}
