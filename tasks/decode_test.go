package tasks

import (
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// edit returns a valid payload with a change to its JSON.
func edit(t testing.TB, change func(p map[string]any)) []byte {
	t.Helper()
	p, err := New(Recognize, file(hashA), Params{}, 0)
	require.NoError(t, err)
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(raw, &m))
	change(m)
	raw, err = json.Marshal(m)
	require.NoError(t, err)
	return raw
}

func TestDecodeReadsWhatNewWrote(t *testing.T) {
	t.Parallel()
	_, err := Decode("audd:recognize", edit(t, func(map[string]any) {}))
	assert.NoError(t, err)
}

func TestDecodeReportsNewerTypesAndVersions(t *testing.T) {
	t.Parallel()
	good := edit(t, func(map[string]any) {})
	for name, tc := range map[string]struct {
		typ string
		raw []byte
	}{
		"an unknown audd type":                   {"audd:lyrics", good},
		"an empty type":                          {"", good},
		"a path without prefix":                  {"recognize", good},
		"a type of another service":              {"email:send", good},
		"a type with a repeated prefix":          {"audd:audd:recognize", good},
		"an unknown type and no payload":         {"audd:lyrics", nil},
		"the next version":                       {"audd:recognize", edit(t, func(p map[string]any) { p["v"] = 2 })},
		"a newer version with other field types": {"audd:recognize", []byte(`{"v":7,"Input":["x"],"input":1}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Decode(tc.typ, tc.raw)
			require.ErrorIs(t, err, ErrNewerPayload)
			assert.NotErrorIs(t, err, ErrMalformed)
		})
	}
}

func TestDecodeRejectsMalformedPayloads(t *testing.T) {
	t.Parallel()
	set := func(field string, value any) []byte {
		return edit(t, func(p map[string]any) { p[field] = value })
	}
	setIn := func(group, field string, value any) []byte {
		return edit(t, func(p map[string]any) { p[group].(map[string]any)[field] = value })
	}
	good := string(edit(t, func(map[string]any) {}))
	for name, tc := range map[string]struct {
		raw  []byte
		want string
	}{
		"an empty payload":          {nil, "read payload version"},
		"not JSON":                  {[]byte("audio"), "read payload version"},
		"an array":                  {[]byte("[]"), "read payload version"},
		"null":                      {[]byte("null"), "has no version"},
		"cut in the middle":         {[]byte(good[:len(good)/2]), "read payload version"},
		"data after the payload":    {[]byte(good + "{}"), "read payload version"},
		"no version":                {[]byte(`{"path":"recognize"}`), "has no version"},
		"version 0":                 {set("v", 0), "has no version"},
		"a negative version":        {set("v", -1), "has no version"},
		"a version as text":         {set("v", "1"), "read payload version"},
		"a fractional version":      {set("v", 1.5), "read payload version"},
		"a version out of range":    {[]byte(`{"v":1e300}`), "read payload version"},
		"an unknown field":          {set("token", "x"), "unknown field"},
		"an unknown field of input": {setIn("input", "audio", "x"), "unknown field"},
		"an unknown parameter":      {setIn("params", "lyrics", true), "unknown field"},
		"a field in another case":   {[]byte(strings.Replace(good, `"key"`, `"KEY"`, 1)), "unknown field"},
		"a field name with an escaped look-alike letter": {[]byte(strings.Replace(good, `"key"`, `"\u212aey"`, 1)), "unknown field"},
		"a field given twice":                            {[]byte(strings.Replace(good, `"key":`, `"key":"x","key":`, 1)), "given twice"},
		"a nested field given twice":                     {[]byte(strings.Replace(good, `"kind":`, `"kind":"url","kind":`, 1)), "given twice"},
		"a number for the key":                           {set("key", 7), "wrong type"},
		"a list for the input":                           {set("input", []int{1}), "wrong type"},
		"text for the size":                              {setIn("input", "size", "big"), "wrong type"},
		"a fractional size":                              {setIn("input", "size", 1.5), "wrong type"},
		"text for return":                                {setIn("params", "return", "spotify"), "wrong type"},
		"another path":                                   {set("path", "enterprise"), "does not match task type"},
		"an unknown path":                                {set("path", "lyrics"), "does not match task type"},
		"another key":                                    {set("key", "recognize_x"), "key does not match"},
		"another content":                                {setIn("input", "sha256", hashB), "key does not match"},
		"another parameter":                              {setIn("params", "market", "de"), "key does not match"},
		"an unknown kind":                                {setIn("input", "kind", "ftp"), "input kind"},
		"a negative size":                                {setIn("input", "size", -1), "size"},
		"a negative duration":                            {setIn("input", "seconds", -1), "seconds"},
		"a duration out of range":                        {setIn("input", "seconds", 1e300), "seconds"},
		"a negative bound":                               {set("max_units", -1), "max_units"},
		"a huge payload":                                 {[]byte(`{"v":1,"key":"` + strings.Repeat("x", maxPayload) + `"}`), "the limit is"},
		"a huge path":                                    {setIn("input", "path", "/"+strings.Repeat("x", MaxPath)), "input path"},
		"deep nesting":                                   {[]byte(`{"v":1,"input":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`), "payload"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Decode("audd:recognize", tc.raw)
			require.ErrorIs(t, err, ErrMalformed)
			require.NotErrorIs(t, err, ErrNewerPayload)
			require.ErrorContains(t, err, tc.want)
			assertClear(t, err)
		})
	}
}

// assertClear checks that an error is one short line.
func assertClear(t testing.TB, err error) {
	t.Helper()
	assert.NotContains(t, err.Error(), "\n")
	assert.Less(t, len(err.Error()), 1000)
}

func TestDecodeErrorsNeverQuoteThePayload(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	for _, name := range []string{"recognize_url.v1.json", "upload.v1.json", "enterprise.v1.json"} {
		raw, err := os.ReadFile("testdata/" + name)
		require.NoError(t, err)
		typ := "audd:" + strings.FieldsFunc(name, func(c rune) bool { return c == '_' || c == '.' })[0]
		var walk func(v any, replace func(old any) (any, bool)) any
		walk = func(v any, replace func(any) (any, bool)) any {
			if n, done := replace(v); done {
				return n
			}
			if m, is := v.(map[string]any); is {
				out := map[string]any{}
				for k, child := range m {
					out[k] = walk(child, replace)
				}
				return out
			}
			return v
		}
		var m map[string]any
		require.NoError(t, json.Unmarshal(raw, &m))
		for target := range 12 { // each string in turn is replaced by the secret
			n := 0
			changed := walk(m, func(v any) (any, bool) {
				if _, is := v.(string); is {
					n++
					return secret, n == target+1
				}
				return nil, false
			})
			raw, err := json.Marshal(changed)
			require.NoError(t, err)
			if _, err = Decode(typ, raw); err != nil {
				assert.NotContains(t, err.Error(), secret)
				assertClear(t, err)
			}
		}
	}
}

func TestDecodeNeverPanicsOnCorruptedPayloads(t *testing.T) {
	t.Parallel()
	good := edit(t, func(map[string]any) {})
	rapid.Check(t, func(t *rapid.T) {
		raw := append([]byte(nil), good...)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			at := rapid.IntRange(0, len(raw)-1).Draw(t, "at")
			raw[at] = rapid.Byte().Draw(t, "byte")
		}
		p, err := Decode("audd:recognize", raw)
		if err == nil && p.Validate() != nil {
			t.Fatalf("decoded an invalid payload: %v", p)
		}
		if err != nil && !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrNewerPayload) {
			t.Fatalf("neither malformed nor newer: %v", err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for name := range payloads {
		raw, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add("audd:recognize", raw)
		f.Add("audd:enterprise", raw)
	}
	f.Add("audd:upload", []byte(`{"v":1,"params":{"audio_id":null}}`))
	f.Add("audd:x", []byte(`{"v":1e9}`))
	f.Fuzz(func(t *testing.T, typ string, raw []byte) {
		if fast, err := decodeFields(raw); err == nil { // the fast path accepts nothing that the strict one rejects
			if strict, err := decodeStrictly(raw); err != nil || !cmp.Equal(fast, strict) {
				t.Fatalf("fast %+v, strict %+v (%v)", fast, strict, err)
			}
		}
		p, err := Decode(typ, raw)
		switch {
		case err == nil:
			again, merr := json.Marshal(p)
			if merr != nil {
				t.Fatal(merr)
			}
			back, err := Decode(typ, again)
			if err != nil {
				t.Fatalf("a decoded payload cannot be decoded again: %v", err)
			}
			if diff := cmp.Diff(p, back, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("a payload changes on its way through JSON: %s", diff)
			}
		case errors.Is(err, ErrMalformed) == errors.Is(err, ErrNewerPayload):
			t.Fatalf("must be either malformed or newer: %v", err)
		case strings.Contains(err.Error(), "\n"):
			t.Fatalf("more than one line: %q", err)
		case len(raw) > 64 && strings.Contains(err.Error(), strconv.Quote(string(raw))):
			t.Fatalf("quotes the payload: %q", err)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	p, err := New(Recognize, link("https://bench.example/clip-000001.mp3"), Params{}, 0)
	require.NoError(b, err)
	raw, err := json.Marshal(p)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(Recognize.Type(), raw); err != nil {
			b.Fatal(err)
		}
	}
}
