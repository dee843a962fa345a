package tasks

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNewNormalizesNames(t *testing.T) {
	t.Parallel()
	p, err := New(Recognize, file(strings.ToUpper(hashA)), Params{Return: []string{"Spotify", "deezer", "spotify"}, Market: " DE", Source: "Main "}, 0)
	require.NoError(t, err)
	assert.Equal(t, []string{"deezer", "spotify"}, p.Params.Return)
	assert.Equal(t, "de", p.Params.Market)
	assert.Equal(t, "main", p.Params.Source)
	assert.Equal(t, hashA, p.Input.SHA256)
	assert.Equal(t, PayloadVersion, p.Version)
	assert.Equal(t, Key(p.Path, p.Input, p.Params), p.Key)
}

func TestNewDoesNotChangeItsArguments(t *testing.T) {
	t.Parallel()
	given := []string{"spotify", "deezer"}
	_, err := New(Recognize, file(hashA), Params{Return: given}, 0)
	require.NoError(t, err)
	assert.Equal(t, []string{"spotify", "deezer"}, given)
}

func TestNewRejectsInvalidFields(t *testing.T) {
	t.Parallel()
	with := func(change func(*Input)) Input {
		in := file(hashA)
		change(&in)
		return in
	}
	upload := Params{AudioID: new(int64(1)), Source: "main"}
	for name, tc := range map[string]struct {
		path   Path
		in     Input
		params Params
		max    int64
		want   string
	}{
		"an unknown path":                      {"lyrics", file(hashA), Params{}, 0, "path: must be"},
		"a negative bound":                     {Recognize, file(hashA), Params{}, -1, "max_units -1"},
		"a removed provider":                   {Recognize, file(hashA), Params{Return: []string{"napster"}}, 0, "return: must be among"},
		"return on enterprise":                 {Enterprise, file(hashA), Params{Return: []string{"spotify"}}, 0, "return: only for recognize"},
		"market on upload":                     {Upload, file(hashA), Params{Market: "de", AudioID: new(int64(1)), Source: "m"}, 0, "market: only for recognize"},
		"a market that is not a country code":  {Recognize, file(hashA), Params{Market: "germany"}, 0, "market: must be"},
		"skip on recognize":                    {Recognize, file(hashA), Params{Skip: new(1)}, 0, "skip: only for enterprise"},
		"every 0":                              {Enterprise, file(hashA), Params{Every: new(0)}, 0, "every 0"},
		"limit 0":                              {Enterprise, file(hashA), Params{Limit: new(0)}, 0, "limit 0"},
		"skip below 0":                         {Enterprise, file(hashA), Params{Skip: new(-1)}, 0, "skip -1"},
		"skip too large":                       {Enterprise, file(hashA), Params{Skip: new(math.MaxInt)}, 0, "skip 9223372036854775807"},
		"first seconds below 0":                {Enterprise, file(hashA), Params{SkipFirstSeconds: -1}, 0, "skip_first_seconds -1"},
		"first seconds and timecode":           {Enterprise, link("https://h.example/"), Params{SkipFirstSeconds: 1, UseTimecode: true}, 0, "cannot be combined"},
		"use_timecode for a file":              {Enterprise, file(hashA), Params{UseTimecode: true}, 0, "use_timecode: only for a URL"},
		"accurate offsets on recognize":        {Recognize, file(hashA), Params{AccurateOffsets: new(true)}, 0, "accurate_offsets: only for enterprise"},
		"an upload without audio_id":           {Upload, file(hashA), Params{Source: "main"}, 0, "audio_id: required for upload"},
		"an upload with a negative audio_id":   {Upload, file(hashA), Params{Source: "main", AudioID: new(int64(-1))}, 0, "audio_id -1"},
		"an upload without a source":           {Upload, file(hashA), Params{AudioID: new(int64(1))}, 0, "source: required for upload"},
		"audio_id on recognize":                {Recognize, file(hashA), Params{AudioID: new(int64(1))}, 0, "audio_id: only for upload"},
		"a clip of an upload":                  {Upload, with(func(in *Input) { in.Clip, in.OriginSHA256 = "12s@0s", hashB }), upload, 0, "not for an upload"},
		"a clip without origin_sha256":         {Recognize, with(func(in *Input) { in.Clip = "12s@0s" }), Params{}, 0, "must be set together"},
		"a clip with spaces":                   {Recognize, with(func(in *Input) { in.Clip, in.OriginSHA256 = "12s @ 0s", hashB }), Params{}, 0, "input clip"},
		"a clip with an invalid origin_sha256": {Recognize, with(func(in *Input) { in.Clip, in.OriginSHA256 = "12s@0s", "b" }), Params{}, 0, "origin_sha256"},
		"a file without path":                  {Recognize, with(func(in *Input) { in.Path = "" }), Params{}, 0, "input path"},
		"a path that is not UTF-8":             {Recognize, with(func(in *Input) { in.Path = "/\xff" }), Params{}, 0, "input path"},
		"a file without hash":                  {Recognize, with(func(in *Input) { in.SHA256 = "" }), Params{}, 0, "sha256"},
		"a file with half a hash":              {Recognize, with(func(in *Input) { in.SHA256 = hashA[:32] }), Params{}, 0, "sha256"},
		"a file with a URL":                    {Recognize, with(func(in *Input) { in.URL = "https://h.example/" }), Params{}, 0, "only for URLs"},
		"a URL with a path":                    {Recognize, Input{Kind: URLInput, URL: "https://h.example/", Path: "/a"}, Params{}, 0, "only for files"},
		"a URL with a hash":                    {Recognize, Input{Kind: URLInput, URL: "https://h.example/", SHA256: hashA}, Params{}, 0, "only for files"},
		"an unsupported URL scheme":            {Recognize, link("ftp://h.example/a"), Params{}, 0, "must be an http or https URL"},
		"a URL without host":                   {Recognize, link("https:///a"), Params{}, 0, "must be an http or https URL"},
		"a relative URL":                       {Recognize, link("a.mp3"), Params{}, 0, "must be an http or https URL"},
		"a URL with control characters":        {Recognize, link("https://h.example/\x00"), Params{}, 0, "must be an http or https URL"},
		"a URL that is too long":               {Recognize, link("https://h.example/" + strings.Repeat("a", MaxURL)), Params{}, 0, "at most 8192 bytes"},
		"no input":                             {Recognize, Input{}, Params{}, 0, "input kind"},
		"a size below 0":                       {Recognize, with(func(in *Input) { in.Size = -1 }), Params{}, 0, "size"},
		"a duration that is not a number":      {Recognize, with(func(in *Input) { in.Seconds = math.NaN() }), Params{}, 0, "seconds"},
		"an infinite duration":                 {Recognize, with(func(in *Input) { in.Seconds = math.Inf(1) }), Params{}, 0, "seconds"},
		"a duration of more than a year":       {Recognize, with(func(in *Input) { in.Seconds = MaxSeconds + 1 }), Params{}, 0, "seconds"},
		"an expiry before the epoch":           {Recognize, Input{Kind: URLInput, URL: "https://h.example/", ExpiresAt: -1}, Params{}, 0, "expires_at"},
		"first seconds of more than a year":    {Enterprise, file(hashA), Params{SkipFirstSeconds: MaxSeconds + 1}, 0, "skip_first_seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(tc.path, tc.in, tc.params, tc.max)
			require.Error(t, err)
			require.ErrorContains(t, err, tc.want)
			assertClear(t, err)
		})
	}
}

func TestValidateReportsAllFieldsInAStableOrder(t *testing.T) {
	t.Parallel()
	p := Payload{Path: Recognize, MaxUnits: -1, Input: Input{Kind: FileInput, Size: -1},
		Params: Params{Skip: new(-1), Every: new(-1), Limit: new(-1), AudioID: new(int64(1))}}
	first := p.Validate()
	require.Error(t, first)
	for _, field := range []string{"v 0", "size", "path", "sha256", "max_units", "skip", "every", "limit", "audio_id", "key"} {
		require.ErrorContains(t, first, field)
	}
	for range 50 {
		require.Equal(t, first.Error(), p.Validate().Error())
	}
}

func TestDecodeReadsTheLargestPayload(t *testing.T) {
	t.Parallel()
	in := link("https://h.example/?" + strings.Repeat("<", MaxURL-19))
	require.Len(t, in.URL, MaxURL)
	p, err := New(Enterprise, in, Params{}, math.MaxInt64)
	require.NoError(t, err)
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	assert.Less(t, len(raw), 64<<10)
	_, err = Decode(p.Path.Type(), raw)
	assert.NoError(t, err)
}
