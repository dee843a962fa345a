package tasks

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// What the fast reader and encoding/json make of a payload is the same
// wherever the fast one takes it, and written again it is the same text.
func TestScannedPayloadsAreThoseOfEncodingJSON(t *testing.T) {
	t.Parallel()
	read := 0
	rapid.Check(t, func(t *rapid.T) {
		text, seconds := rapid.StringMatching(`[a-z0-9:/?=@%.-]{0,20}`), rapid.Float64Range(0, 1e5)
		if rapid.IntRange(0, 2).Draw(t, "odd") == 0 {
			text, seconds = rapid.String(), rapid.Float64()
		}
		small := rapid.Int64Range(-1, 1<<40)
		p := Payload{
			Version: rapid.IntRange(0, 2).Draw(t, "v"), Path: Path(text.Draw(t, "path")), Key: text.Draw(t, "key"), MaxUnits: small.Draw(t, "units"),
			Input: Input{
				Kind: InputKind(text.Draw(t, "kind")), Path: text.Draw(t, "file"), URL: text.Draw(t, "url"), Size: small.Draw(t, "size"),
				SHA256: text.Draw(t, "hash"), Clip: text.Draw(t, "clip"), OriginSHA256: text.Draw(t, "origin"),
				Seconds: seconds.Draw(t, "seconds"), ExpiresAt: small.Draw(t, "expires"),
			},
		}
		if rapid.Bool().Draw(t, "params") {
			p.Params = Params{Return: rapid.SliceOf(text).Draw(t, "return"), Market: text.Draw(t, "market"), SkipFirstSeconds: 1, AudioID: &p.MaxUnits}
		}
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 2).Draw(t, "spoilt") {
			at := rapid.IntRange(0, len(raw)-1).Draw(t, "at")
			with := rapid.SampledFrom([]string{"", "0", "-", "+", ".", "1e2", " ", "\\", "}", `,"size":0`, `,"max_units":0`}).Draw(t, "with")
			raw = slices.Concat(raw[:at], []byte(with), raw[at+rapid.IntRange(0, 1).Draw(t, "less"):])
		}
		got, ok := scanned(raw)
		if !ok {
			return
		}
		read++
		if again, err := json.Marshal(got); err != nil || !bytes.Equal(again, raw) {
			t.Fatalf("read %s, written again %s (%v)", raw, again, err)
		}
		var want Payload
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
	if read == 0 {
		t.Fatal("not one payload was read the fast way")
	}
}

func BenchmarkDecode(b *testing.B) {
	p, err := New(Recognize, Input{Kind: URLInput, URL: "https://bench.example/clip-000001.mp3"}, Params{}, 0)
	if err != nil {
		b.Fatal(err)
	}
	raw, err := json.Marshal(p)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(Recognize.Type(), raw); err != nil {
			b.Fatal(err)
		}
	}
}
