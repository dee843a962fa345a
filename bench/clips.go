package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"reprise/audd"
	"reprise/tasks"
)

// clipPayloads writes n distinct clips of a few bytes into dir and returns
// their tasks, in order.
func clipPayloads(dir string, n int) ([]tasks.Payload, error) {
	out := make([]tasks.Payload, n)
	err := inParallel(4, n, func(i int) error {
		content := fmt.Appendf(nil, "RIFF....WAVE clip %d of the benchmark", i)
		path := filepath.Join(dir, fmt.Sprintf("clip-%06d.wav", i))
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("write a clip: %w", err)
		}
		sum := sha256.Sum256(content)
		p, err := tasks.New(tasks.Recognize, tasks.Input{
			Kind: tasks.FileInput, Path: path, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]),
		}, tasks.Params{}, 0)
		out[i] = p
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// fileAudio opens the clip of a task for the client.
func fileAudio(in tasks.Input) audd.Audio {
	return audd.Audio{Name: filepath.Base(in.Path), Open: func() (io.ReadCloser, int64, error) {
		f, err := os.Open(in.Path)
		if err != nil {
			return nil, 0, fmt.Errorf("open a clip: %w", err)
		}
		return f, in.Size, nil
	}}
}
