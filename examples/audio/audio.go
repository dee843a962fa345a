// Package audio holds the sample clips that `worker dev` queues.
package audio

import "embed"

// Files are the clips, by file name.
//
//go:embed *.mp3 *.flac *.wav *.ogg
var Files embed.FS
