package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"reprise/tasks"
)

// clipPayloads writes n distinct clips of a few bytes into dir and returns their tasks, in order.
func clipPayloads(dir string, n int) ([]tasks.Payload, error) {
	out := make([]tasks.Payload, n)
	var writers errgroup.Group
	writers.SetLimit(4)
	for i := range out {
		writers.Go(func() (err error) {
			content := fmt.Appendf(nil, "RIFF....WAVE clip %d of the benchmark", i)
			path := filepath.Join(dir, fmt.Sprintf("clip-%06d.wav", i))
			if err := os.WriteFile(path, content, 0o600); err != nil {
				return fmt.Errorf("write a clip: %w", err)
			}
			sum := sha256.Sum256(content)
			out[i], err = tasks.New(tasks.Recognize, tasks.Input{
				Kind: tasks.FileInput, Path: path, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]),
			}, tasks.Params{}, 0)
			return err
		})
	}
	return out, writers.Wait()
}
