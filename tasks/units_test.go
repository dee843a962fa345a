package tasks

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestUnitsReturnsTheMostThatACallMayCost(t *testing.T) {
	t.Parallel()
	const hour = 3600
	for name, tc := range map[string]struct {
		path    Path
		seconds float64
		params  Params
		max     int64
		counts  bool // limit counts chunks
		want    int64
		bounded bool
	}{
		"a clip is one":                                              {Recognize, 12, Params{}, 0, false, 1, true},
		"a long clip is still one":                                   {Recognize, hour, Params{}, 0, false, 1, true},
		"an upload is one":                                           {Upload, hour, Params{}, 0, false, 1, true},
		"an hour is 300":                                             {Enterprise, hour, Params{}, 0, false, 300, true},
		"less than a second is one":                                  {Enterprise, 0.1, Params{}, 0, false, 1, true},
		"12 s are one":                                               {Enterprise, 12, Params{}, 0, false, 1, true},
		"a little more than 12 s are two":                            {Enterprise, 12.001, Params{}, 0, false, 2, true},
		"skip 4, every 1 is one a minute":                            {Enterprise, hour, Params{Skip: new(4), Every: new(1)}, 0, false, 60, true},
		"skip 9, every 1 is one every two minutes":                   {Enterprise, hour, Params{Skip: new(9), Every: new(1)}, 0, false, 30, true},
		"every without skip scans all":                               {Enterprise, hour, Params{Every: new(7)}, 0, false, 300, true},
		"skip without every scans one of skip+1":                     {Enterprise, hour, Params{Skip: new(4)}, 0, false, 60, true},
		"the last, partial period counts":                            {Enterprise, 12 * 13, Params{Skip: new(3), Every: new(2)}, 0, false, 6, true},
		"a period longer than the audio":                             {Enterprise, 36, Params{Skip: new(1000), Every: new(2)}, 0, false, 2, true},
		"skipped first seconds are free":                             {Enterprise, hour, Params{SkipFirstSeconds: 1800}, 0, false, 150, true},
		"all seconds skipped is one":                                 {Enterprise, 60, Params{SkipFirstSeconds: hour}, 0, false, 1, true},
		"limit is ignored unless it counts chunks":                   {Enterprise, hour, Params{Limit: new(5)}, 0, false, 300, true},
		"limit bounds where it counts chunks":                        {Enterprise, hour, Params{Limit: new(5)}, 0, true, 5, true},
		"a limit above the length changes nothing":                   {Enterprise, 24, Params{Limit: new(5)}, 0, true, 2, true},
		"no length, no bound":                                        {Enterprise, 0, Params{}, 0, false, 0, false},
		"no length and a limit that does not count chunks, no bound": {Enterprise, 0, Params{Limit: new(5)}, 0, false, 0, false},
		"no length but a limit that counts chunks":                   {Enterprise, 0, Params{Limit: new(5)}, 0, true, 5, true},
		"no length but max_units":                                    {Enterprise, 0, Params{}, 50, false, 50, true},
		"no length, the smaller of limit and max":                    {Enterprise, 0, Params{Limit: new(5)}, 50, true, 5, true},
		"no length, the smaller of max and limit":                    {Enterprise, 0, Params{Limit: new(80)}, 50, true, 50, true},
		"a known length takes precedence over max_units":             {Enterprise, hour, Params{}, 50, false, 300, true},
		"a year of audio does not overflow":                          {Enterprise, MaxSeconds, Params{Skip: new(MaxChunks), Every: new(MaxChunks)}, 0, false, MaxSeconds / 12, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Payload{Path: tc.path, Input: Input{Kind: FileInput, Seconds: tc.seconds}, Params: tc.params, MaxUnits: tc.max}
			got, bounded := p.Units(tc.counts)
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.bounded, bounded)
		})
	}
}

// The property compares the formula with counting chunk by chunk.
func TestUnitsEqualsTheNumberOfScannedChunks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		chunks := rapid.IntRange(1, 400).Draw(t, "chunks")
		skip, every := rapid.IntRange(0, 20).Draw(t, "skip"), rapid.IntRange(1, 20).Draw(t, "every")
		p := Payload{Path: Enterprise, Input: Input{Seconds: float64(chunks) * ChunkSeconds}, Params: Params{Skip: &skip, Every: &every}}
		want := int64(0)
		for i := range chunks {
			if i%(skip+every) < every {
				want++
			}
		}
		if got, bounded := p.Units(false); got != want || !bounded {
			t.Fatalf("%d chunks, skip %d, every %d: %d, counted %d", chunks, skip, every, got, want)
		}
	})
}
