package audd_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"reprise/audd"
)

func TestRecognizeDecodesTheResponsesThatAudDPublished(t *testing.T) {
	t.Parallel()
	basic, err := recognize(t, answer(200, fixture(t, "recognize_basic.json")))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(&audd.Song{
		Artist: "Tears For Fears", Title: "Everybody Wants To Rule The World", Album: "Songs From The Big Chair",
		ReleaseDate: "2014-11-10", Label: "UMC (Universal Music Catalogue)", Timecode: "00:56", SongLink: "https://lis.tn/NbkVb",
	}, basic.Song))
	require.Empty(t, basic.Warning)
	require.Equal(t, "req-1", basic.RequestID)

	custom, err := recognize(t, answer(200, fixture(t, "recognize_custom_match.json")))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(&audd.Song{Timecode: "01:45", AudioID: new(int64(146))}, custom.Song))

	full, err := recognize(t, answer(200, fixture(t, "recognize_with_metadata.json")))
	require.NoError(t, err)
	var body struct {
		Result map[string]json.RawMessage `json:"result"`
	}
	require.NoError(t, json.Unmarshal([]byte(fixture(t, "recognize_with_metadata.json")), &body))
	require.Subset(t, []string{"apple_music", "spotify", "musicbrainz"}, keys(full.Song.Extra))
	require.JSONEq(t, string(body.Result["apple_music"]), string(full.Song.Extra["apple_music"]))
	require.Len(t, full.Song.Extra, len(body.Result)-7)
}

func keys(m map[string]json.RawMessage) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	return out
}

func TestErrorOmitsTheRequestEchoedByAudD(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]int{
		"error_700_no_file.json":                 700,
		"error_900_invalid_token.json":           900,
		"error_904_enterprise_unauthorized.json": 904,
	} {
		_, err := recognize(t, answer(200, fixture(t, name)))
		e := failed(t, err)
		require.Equal(t, code, e.Code)
		require.NotEmpty(t, e.Message)
		require.NotContains(t, fmt.Sprintf("%+v %#v", err, *e), "example.mp3", "the echoed URL")
		require.NotContains(t, err.Error(), "api@audd.io")
	}
}

func TestCheckTokenAcceptsAnEmptyStreamList(t *testing.T) {
	t.Parallel()
	s := serve(t, answer(200, fixture(t, "getStreams_empty.json")))
	require.NoError(t, newClient(t, s.URL).CheckToken(t.Context()))
}

func TestRecognizeDecodesResultsOfUnexpectedTypes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		result  string // includes the leading comma and the field name
		song    *audd.Song
		warning bool
	}{
		"null":             {`,"result":null`, nil, false},
		"missing":          {``, nil, false},
		"empty object":     {`,"result":{}`, nil, false},
		"PHP empty object": {`,"result":[]`, nil, false},
		"text":             {`,"result":"none"`, nil, true},
		"list":             {`,"result":[{"title":"T"}]`, nil, true},
		"numbers and booleans as text": {`,"result":{"title":1999,"artist":true,"audio_id":"12"}`,
			&audd.Song{Title: "1999", Artist: "true", AudioID: new(int64(12))}, false},
		"nulls": {`,"result":{"title":"T","album":null,"audio_id":null}`, &audd.Song{Title: "T"}, false},
		"wrong types are kept in Extra": {`,"result":{"title":"T","artist":["A","B"],"audio_id":{"x":1}}`,
			&audd.Song{Title: "T", Extra: map[string]json.RawMessage{"artist": json.RawMessage(`["A","B"]`), "audio_id": json.RawMessage(`{"x":1}`)}}, false},
		"unknown fields are kept in Extra": {`,"result":{"title":"T","mood":"calm"}`,
			&audd.Song{Title: "T", Extra: map[string]json.RawMessage{"mood": json.RawMessage(`"calm"`)}}, false},
		"field names are case-sensitive": {`,"result":{"title":"T","Title":"U"}`,
			&audd.Song{Title: "T", Extra: map[string]json.RawMessage{"Title": json.RawMessage(`"U"`)}}, false},
		"invalid UTF-8": {`,"result":{"title":"` + "a\xffb" + `"}`, &audd.Song{Title: "a\uFFFDb"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, status := range []string{`"success"`, `"Success "`} {
				out, err := recognize(t, answer(200, "\xef\xbb\xbf"+`{"status":`+status+c.result+`}`))
				require.NoError(t, err)
				require.Empty(t, cmp.Diff(c.song, out.Song))
				require.Equal(t, c.warning, out.Warning != "", out.Warning)
				require.True(t, json.Valid(out.Raw))
			}
		})
	}
}

func enterprise(t *testing.T, body string) audd.EnterpriseResult {
	t.Helper()
	s := serve(t, answer(200, body))
	out, err := newClient(t, s.URL).Enterprise(t.Context(), audd.EnterpriseRequest{Audio: audio([]byte("abc"))})
	require.NoError(t, err)
	require.Len(t, s.seen(), 1)
	return out
}

func TestEnterpriseDecodesTheResponseThatAudDPublished(t *testing.T) {
	t.Parallel()
	out := enterprise(t, fixture(t, "enterprise_with_isrc_upc.json"))
	require.Empty(t, out.Warning)
	require.Empty(t, cmp.Diff([]audd.Chunk{{Songs: []audd.Song{{
		Artist: "Tears For Fears", Title: "Everybody Wants To Rule The World", Album: "Songs From The Big Chair",
		ReleaseDate: "2014-11-10", Label: "UMC (Universal Music Catalogue)", Timecode: "00:57", SongLink: "https://lis.tn/NbkVb",
		ISRC: "GBUM71403885", UPC: "00602547037169", Extra: map[string]json.RawMessage{"score": json.RawMessage("81")},
	}}}}, out.Chunks))
}

func TestEnterpriseReadsOffsetsAndKeepsEmptyChunks(t *testing.T) {
	t.Parallel()
	out := enterprise(t, `{"status":"success","result":[
		{"songs":[{"title":"A","score":"88","start_offset":1200},{"title":"B"}],"offset":"01:00:24"},
		{"songs":[],"offset":"00:36"},
		{"songs":null,"offset":48,"note":"n"}],"execution_time":3}`)
	require.Empty(t, cmp.Diff([]audd.Chunk{
		{Offset: time.Hour + 24*time.Second, Songs: []audd.Song{
			{Title: "A", Extra: map[string]json.RawMessage{"score": json.RawMessage(`"88"`), "start_offset": json.RawMessage("1200")}},
			{Title: "B"},
		}},
		{Offset: 36 * time.Second},
		{Offset: 48 * time.Second},
	}, out.Chunks))
}

func TestUnreadablePartsOfAnEnterpriseResultAreCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		result  string
		chunks  int
		warning string
	}{
		"null":                     {`null`, 0, ""},
		"empty":                    {`[]`, 0, ""},
		"empty object":             {`{}`, 0, ""},
		"a chunk without an array": {`{"songs":[],"offset":"00:12"}`, 1, ""},
		"text":                     {`"none"`, 0, "1 parts"},
		"elements of other types":  {`[5,null,{"a":1},{"offset":"00:00","songs":[]}]`, 1, "3 parts"},
		"offset unknown":           {`[{"offset":"soon","songs":[{"title":"T"}]}]`, 1, "1 parts"},
		"songs of another type":    {`[{"offset":"00:00","songs":{"title":"T"}}]`, 1, "1 parts"},
		"a song of another type":   {`[{"offset":"00:00","songs":["T",{}]}]`, 1, "2 parts"},
		"no songs field":           {`[{"offset":"00:12"}]`, 1, ""},
	} {
		out := enterprise(t, `{"status":"success","result":`+c.result+`}`)
		require.Len(t, out.Chunks, c.chunks, name)
		if c.warning == "" {
			require.Empty(t, out.Warning, name)
		} else {
			require.Contains(t, out.Warning, c.warning, name)
		}
		require.JSONEq(t, c.result, string(out.Raw), name)
		if name == "offset unknown" {
			require.Zero(t, out.Chunks[0].Offset)
			require.Equal(t, "T", out.Chunks[0].Songs[0].Title)
		}
	}
}
