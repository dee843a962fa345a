package tasks

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	hashA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	hashB = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"
)

func file(hash string) Input {
	return Input{Kind: FileInput, Path: "/audio/clip.mp3", Size: 193_000, SHA256: hash, Seconds: 12}
}

func link(raw string) Input { return Input{Kind: URLInput, URL: raw} }

// golden compares got with a file in testdata, or writes the file with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "to accept the change: go test ./tasks -update. Keys and payloads in Redis and SQL outlive a release")
}

// keyCases covers every row of the key table. Cases with the same work must have
// the same key; cases with different work must have different keys.
var keyCases = []struct {
	work   string
	path   Path
	in     Input
	params Params
}{
	{"recognize, a file", Recognize, file(hashA), Params{}},
	{"recognize, a file", Recognize, Input{Kind: SpoolInput, Path: "9f/86", SHA256: hashA}, Params{}},
	{"recognize, a file", Recognize, file(strings.ToUpper(hashA)), Params{Market: "US"}},
	{"recognize, a file", Recognize, file(hashA), Params{Source: "backup"}},
	{"recognize, a file", Recognize, file(hashA), Params{Return: []string{" "}}},
	{"recognize, another file", Recognize, file(hashB), Params{}},
	{"recognize, with metadata", Recognize, file(hashA), Params{Return: []string{"spotify", "apple_music"}}},
	{"recognize, with metadata", Recognize, file(hashA), Params{Return: []string{"Apple_Music ", "spotify", "spotify"}}},
	{"recognize, with less metadata", Recognize, file(hashA), Params{Return: []string{"spotify"}}},
	{"recognize, for a market", Recognize, file(hashA), Params{Market: "de"}},
	{"recognize, for a market", Recognize, file(hashA), Params{Market: " DE"}},
	{"recognize, a clip", Recognize, Input{Kind: SpoolInput, Path: "c", SHA256: hashB, OriginSHA256: hashA, Clip: "12s@25%"}, Params{}},
	{"recognize, a clip", Recognize, Input{Kind: SpoolInput, Path: "d", SHA256: hashA, OriginSHA256: hashA, Clip: "12s@25%"}, Params{}},
	{"recognize, another clip", Recognize, Input{Kind: SpoolInput, Path: "c", SHA256: hashB, OriginSHA256: hashA, Clip: "12s@50%"}, Params{}},
	{"recognize, a URL", Recognize, link("https://h.example/a.mp3"), Params{}},
	{"recognize, a URL", Recognize, link("HTTPS://H.example:443/a.mp3?X-Amz-Signature=s&X-Amz-Date=d"), Params{}},
	{"recognize, a URL", Recognize, Input{Kind: URLInput, URL: "https://h.example/a.mp3", ExpiresAt: 9}, Params{}},
	{"recognize, another URL", Recognize, link("https://h.example/a.mp3?v=2"), Params{}},
	{"recognize, a URL that looks like a hash", Recognize, link(hashA), Params{}},
	{"recognize, to verify an upload", Recognize, file(hashA), Params{Source: "main", Verifies: &Verification{Key: "upload_a", Try: 1}}},
	{"recognize, to verify an upload again", Recognize, file(hashA), Params{Source: "main", Verifies: &Verification{Key: "upload_a", Try: 2}}},
	{"recognize, to verify an upload's next send", Recognize, file(hashA), Params{Source: "main", Verifies: &Verification{Key: "upload_a", Generation: 1, Try: 1}}},
	{"enterprise, a file", Enterprise, file(hashA), Params{}},
	{"enterprise, a file", Enterprise, file(hashA), Params{Skip: new(0), Every: new(1), AccurateOffsets: new(true)}},
	{"enterprise, skip", Enterprise, file(hashA), Params{Skip: new(4)}},
	{"enterprise, every", Enterprise, file(hashA), Params{Every: new(4)}},
	{"enterprise, limit", Enterprise, file(hashA), Params{Limit: new(4)}},
	{"enterprise, skip and every", Enterprise, file(hashA), Params{Skip: new(4), Every: new(4)}},
	{"enterprise, first seconds skipped", Enterprise, file(hashA), Params{SkipFirstSeconds: 4}},
	{"enterprise, coarse offsets", Enterprise, file(hashA), Params{AccurateOffsets: new(false)}},
	{"enterprise, a URL", Enterprise, link("https://h.example/a.mp3"), Params{}},
	{"enterprise, a URL's timecode", Enterprise, link("https://h.example/a.mp3"), Params{UseTimecode: true}},
	{"enterprise, a segment", Enterprise, Input{Kind: FileInput, Path: "/s", SHA256: hashB, OriginSHA256: hashA, Clip: "900s@1800s"}, Params{}},
	{"upload, slot 7", Upload, file(hashA), Params{AudioID: new(int64(7)), Source: "main"}},
	{"upload, slot 7", Upload, file(hashA), Params{AudioID: new(int64(7)), Source: " Main"}},
	{"upload, slot 0", Upload, file(hashA), Params{AudioID: new(int64(0)), Source: "main"}},
	{"upload, slot 7 of another source", Upload, file(hashA), Params{AudioID: new(int64(7)), Source: "backup"}},
	{"upload, other content in slot 7", Upload, file(hashB), Params{AudioID: new(int64(7)), Source: "main"}},
	{"upload, slot 7 from a URL", Upload, link("https://h.example/a.mp3"), Params{AudioID: new(int64(7)), Source: "main"}},
}

func TestKeysMatchTheGoldenFile(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	keys, works := map[string]string{}, map[string]string{}
	for _, c := range keyCases {
		key := Key(c.path, c.in, c.params)
		if known, again := works[c.work]; again {
			assert.Equal(t, known, key, "%s: the same work", c.work)
			continue
		}
		assert.Empty(t, keys[key], "%s and %s are different work", c.work, keys[key])
		works[c.work], keys[key] = key, c.work
		fmt.Fprintf(&b, "%s  %s\n", key, c.work)
	}
	golden(t, "keys.golden", b.String())
}

func TestEveryKeyFieldHasAGoldenCase(t *testing.T) {
	t.Parallel()
	for path, fields := range keyFields {
		for _, f := range fields {
			found := false
			for _, c := range keyCases {
				found = found || c.path == path && f.value(c.params) != ""
			}
			assert.True(t, found, "%s %s", path, f.name)
		}
	}
}

var payloads = map[string]func() (Payload, error){
	"recognize.v1.json": func() (Payload, error) {
		return New(Recognize, file(hashA), Params{Return: []string{"spotify", "apple_music"}, Market: "DE"}, 0)
	},
	"recognize_url.v1.json": func() (Payload, error) {
		in := link("https://b.s3.example/clip.mp3?X-Amz-Date=20260131T120000Z&X-Amz-Expires=900&X-Amz-Signature=abc&versionId=3")
		in.ExpiresAt = 1769861700
		return New(Recognize, in, Params{}, 0)
	},
	"recognize_clip.v1.json": func() (Payload, error) {
		return New(Recognize, Input{Kind: SpoolInput, Path: "60/" + hashB, Size: 192_000, SHA256: hashB, OriginSHA256: hashA, Clip: "12s@25%", Seconds: 12}, Params{}, 0)
	},
	"enterprise.v1.json": func() (Payload, error) {
		in := file(hashA)
		in.Seconds = 3600.5
		return New(Enterprise, in, Params{Skip: new(4), Every: new(1), Limit: new(30), SkipFirstSeconds: 10, AccurateOffsets: new(false)}, 100)
	},
	"enterprise_url.v1.json": func() (Payload, error) {
		return New(Enterprise, link("https://h.example/show?t=90"), Params{UseTimecode: true, Source: "main"}, 300)
	},
	"upload.v1.json": func() (Payload, error) {
		return New(Upload, file(hashA), Params{AudioID: new(int64(146)), Source: "main"}, 0)
	},
}

func TestPayloadsMatchTheGoldenFiles(t *testing.T) {
	t.Parallel()
	for name, build := range payloads {
		t.Run(name, func(t *testing.T) {
			p, err := build()
			require.NoError(t, err)
			raw, err := json.Marshal(p)
			require.NoError(t, err)
			golden(t, name, string(raw)+"\n")
		})
	}
}

func TestDecodeReadsEveryGoldenPayload(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		raw, err := os.ReadFile(name)
		require.NoError(t, err)
		path, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(name), ".v1.json"), "_")
		p, err := Decode("audd:"+path, raw)
		require.NoError(t, err, name)
		want, err := payloads[filepath.Base(name)]()
		require.NoError(t, err)
		assert.Equal(t, want, p, name)
	}
}

func TestPayloadsHaveOnlyKnownFieldsAndStaySmall(t *testing.T) {
	t.Parallel()
	allowed := map[string]bool{"v": true, "path": true, "key": true, "input": true, "params": true, "max_units": true}
	for name, build := range payloads {
		p, err := build()
		require.NoError(t, err)
		raw, err := json.Marshal(p)
		require.NoError(t, err)
		var fields map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(raw, &fields))
		for field := range fields {
			assert.True(t, allowed[field], "%s: field %s", name, field)
		}
		assert.Less(t, len(raw), 1024, name)
	}
}
