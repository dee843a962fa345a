package tasks

import (
	"fmt"
	"time"
)

// PayloadVersion is the version that this build writes and the newest that it reads.
//
// A worker rejects unknown fields, because a worker that ignores a bound or a parameter costs money or stores a wrong
// result. A new field therefore needs a new version, which only payloads with that field use.
const PayloadVersion = 1

// Limits of the fields of a payload. They prevent overflow in arithmetic and keep payloads small.
const (
	MaxURL     = 8 << 10            // bytes
	MaxPath    = 4 << 10            // bytes
	MaxSeconds = 366 * 24 * 60 * 60 // of audio
	MaxChunks  = MaxSeconds         // of skip, every, limit
	MaxClip    = 64                 // bytes
)

// InputKind says where the audio is.
type InputKind string

// The closed set of input kinds.
const (
	FileInput  InputKind = "file"  // a path every worker can read
	URLInput   InputKind = "url"   // AudD downloads it
	SpoolInput InputKind = "spool" // an object in the shared spool
)

// Input references the audio of a task. It never contains audio.
type Input struct {
	Kind InputKind `json:"kind"`
	// Path is the absolute file path, or the spool object's name.
	Path string `json:"path,omitempty"`
	// URL may contain a signature. Show it only through RedactURL.
	URL string `json:"url,omitempty"`
	// Size is the length of the file in bytes; 0 for URLs.
	Size int64 `json:"size,omitempty"`
	// SHA256 is the hash of the content in lower-case hex; empty for URLs.
	SHA256 string `json:"sha256,omitempty"`
	// Clip describes how the audio was cut ("12s@25%", "900s@1800s") from the recording whose content hash is
	// OriginSHA256. Clip and OriginSHA256 are empty for a whole recording. SHA256, Size and Seconds describe the clip.
	Clip         string `json:"clip,omitempty"`
	OriginSHA256 string `json:"origin_sha256,omitempty"`
	// Seconds is the measured duration of the audio, 0 if unknown.
	Seconds float64 `json:"seconds,omitempty"`
	// ExpiresAt is when a signed URL expires, in Unix seconds; 0 if unknown.
	ExpiresAt int64 `json:"expires_at,omitempty"`
}

// Params are the parameters of the call to AudD. The table in key.go lists those that are part of the key.
type Params struct {
	// Return lists metadata providers (recognize only): apple_music, spotify,
	// deezer, musicbrainz.
	Return []string `json:"return,omitempty"`
	// Market is a country code for the providers; AudD's default is "us".
	Market string `json:"market,omitempty"`

	// Skip, Every and Limit count 12 s chunks (enterprise only); nil = AudD's default.
	Skip  *int `json:"skip,omitempty"`
	Every *int `json:"every,omitempty"`
	Limit *int `json:"limit,omitempty"`
	// SkipFirstSeconds excludes UseTimecode.
	SkipFirstSeconds int  `json:"skip_first_seconds,omitempty"`
	UseTimecode      bool `json:"use_timecode,omitempty"`
	// AccurateOffsets requests start and end within a chunk; nil = true, the value that AudD's SDKs send.
	AccurateOffsets *bool `json:"accurate_offsets,omitempty"`

	// AudioID is the catalog slot of an upload.
	AudioID *int64 `json:"audio_id,omitempty"`
	// Source pins the task to one upstream account; required for an upload.
	Source string `json:"source,omitempty"`

	// Verifies is set in a recognition that the worker enqueues to check whether an uncertain upload arrived; nil in
	// every other task.
	Verifies *Verification `json:"verifies,omitempty"`
}

// Verification names the upload that a recognition verifies.
type Verification struct {
	Key        string `json:"key"`        // of the upload
	Generation int64  `json:"generation"` // of the upload in the ledger
	Try        int    `json:"try"`        // from 1; each try is a separate task
}

// String returns the text that is part of the task's key.
func (v Verification) String() string { return fmt.Sprintf("%s@%d#%d", v.Key, v.Generation, v.Try) }

// Payload is the data of a task: input reference, hash and parameters. It contains no audio and no token. New builds
// it.
type Payload struct {
	Version int    `json:"v"`
	Path    Path   `json:"path"`
	Key     string `json:"key"`
	Input   Input  `json:"input"`
	Params  Params `json:"params"`
	// MaxUnits is the most units one call may be billed; 0 = no bound.
	MaxUnits int64 `json:"max_units,omitempty"`
}

// ExpiredAt reports whether the URL has expired at now; false if unknown.
func (in Input) ExpiredAt(now time.Time) bool {
	return in.ExpiresAt != 0 && now.Unix() >= in.ExpiresAt
}
