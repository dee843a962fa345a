package auddsim

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"reprise/internal/proctest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

type scanned struct {
	Status string  `json:"status"`
	Result []chunk `json:"result"`
	Time   string  `json:"execution_time"`
}

func scanOf(t *testing.T, s *Server, f form) scanned {
	t.Helper()
	f.path = "/enterprise/"
	r := send(t, s, f)
	require.NoError(t, r.err)
	var out scanned
	require.NoError(t, json.Unmarshal([]byte(r.body), &out), r.body)
	require.Equal(t, "success", out.Status, r.body)
	require.NotEmpty(t, out.Time)
	return out
}

func TestEnterpriseUnitsAreTheScannedChunks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		duration time.Duration
		fields   map[string]string
		units    int64
	}{
		"an hour":                           {time.Hour, nil, 300},
		"a moment is one":                   {time.Millisecond, nil, 1},
		"a chunk begun counts":              {25 * time.Second, nil, 3},
		"one per minute":                    {time.Hour, map[string]string{"skip": "4", "every": "1"}, 60},
		"two of five, the rest too":         {13 * 12 * time.Second, map[string]string{"skip": "3", "every": "2"}, 6},
		"limit":                             {time.Hour, map[string]string{"limit": "7"}, 7},
		"limit above what there is":         {24 * time.Second, map[string]string{"limit": "7"}, 2},
		"skip_first_seconds":                {time.Hour, map[string]string{"skip_first_seconds": "3000"}, 50},
		"skip_first_seconds beyond the end": {time.Minute, map[string]string{"skip_first_seconds": "3000"}, 1},
		"every without skip":                {2 * time.Minute, map[string]string{"every": "3"}, 10},
	} {
		s := Start(t, Config{Rules: []Rule{{Duration: c.duration, Result: ResultMatch}}})
		f := clip("long.mp3", "x")
		maps.Copy(f.fields, c.fields)
		require.Len(t, scanOf(t, s, f).Result, int(c.units), name)
		require.Equal(t, c.units, s.Bill().Units, name)
	}
}

func TestEnterpriseLengthIsThatOfTheWAVHeaderOrEstimatedFromTheSize(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{BytesPerSecond: 1000})
	head := make([]byte, 44)
	copy(head, "RIFF....WAVEfmt ")
	binary.LittleEndian.PutUint32(head[28:], 8000)
	scanOf(t, s, clip("a.wav", string(head)+strings.Repeat("x", 8000*60-44)))
	require.EqualValues(t, 5, s.Bill().Units)
	scanOf(t, s, clip("a.mp3", strings.Repeat("x", 36_001)))
	require.EqualValues(t, 9, s.Bill().Units)
	scanOf(t, s, form{fields: map[string]string{"api_token": "token-a", "url": "https://example.test/long"}})
	require.EqualValues(t, 9+15, s.Bill().Units, "a URL counts as three minutes")
}

func TestEnterpriseChunksHaveOffsetsAndSongs(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{MatchShare: 1, Rules: []Rule{
		{Name: "hours*", Duration: 2 * time.Hour},
		{Name: "songs*", Duration: 2 * time.Minute, Songs: []Song{{Title: "One"}, {Title: "Two"}}},
		{Name: "none*", Result: ResultNull},
	}})
	f := clip("hours.mp3", "x")
	f.fields["skip"], f.fields["every"], f.fields["accurate_offsets"] = "4", "1", "true"
	out := scanOf(t, s, f).Result
	require.Equal(t, "00:00:00", out[0].Offset)
	require.Equal(t, "00:01:00", out[1].Offset)
	require.NotNil(t, out[0].Songs[0].StartOffset)
	require.NotEmpty(t, out[0].Songs[0].ISRC)
	require.NotZero(t, out[0].Songs[0].Score)

	out = scanOf(t, s, clip("songs.mp3", "x")).Result
	require.Len(t, out, 10)
	require.Equal(t, "One", out[4].Songs[0].Title)
	require.Equal(t, "Two", out[5].Songs[0].Title)
	require.Equal(t, "01:48", out[9].Offset)
	require.Empty(t, scanOf(t, s, clip("none.mp3", "x")).Result)
}

func TestEnterpriseCanHaveItsOwnAddress(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{EnterpriseAddr: "127.0.0.1:0"})
	r := do(newClient(t), clip("a.mp3", "x").request(t, strings.TrimSuffix(s.EnterpriseURL, "/")))
	require.NoError(t, r.err)
	require.Contains(t, r.body, "execution_time")
	require.EqualValues(t, 1, s.Bill().ByPath[PathEnterprise])
	require.NotEqual(t, s.URL+"/enterprise/", s.EnterpriseURL)
}

func TestUploadedAudioIsRecognizedForTheSameTokenOnly(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{MatchShare: -1})
	require.Equal(t, `{"status":"success","result":null}`, send(t, s, upload(146, "my track")).body)
	found := send(t, s, clip("b.mp3", "my track")).result(t)
	require.EqualValues(t, 146, found["audio_id"])
	require.Len(t, found, 2, "only timecode and audio_id")
	stranger := clip("b.mp3", "my track")
	stranger.fields["api_token"] = "token-b"
	require.Nil(t, send(t, s, stranger).result(t), "only the token that uploaded finds it")
	require.EqualValues(t, 146, *scanOf(t, s, clip("b.mp3", "my track")).Result[0].Songs[0].AudioID)

	send(t, s, upload(146, "another track"))
	require.Nil(t, send(t, s, clip("b.mp3", "my track")).result(t), "the slot was overwritten")
	require.EqualValues(t, 146, send(t, s, clip("b.mp3", "another track")).result(t)["audio_id"])

	var slots []Slot
	require.Equal(t, 200, admin(t, s, "GET", "catalog", "", &slots))
	require.Len(t, slots, 1)
	require.Equal(t, hashOf("another track"), slots[0].Hash)
	require.Len(t, slots[0].History, 2)
	sends := s.Bill().Upload(146)
	require.EqualValues(t, 2, sends.Started)
	require.EqualValues(t, 2, sends.Complete)
	require.EqualValues(t, 2, sends.Units)
	require.Equal(t, map[string]int64{"uploaded": 2}, sends.Outcomes)
}

func TestUploadedAudioIsRecognizedAfterTheIndexDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim, err := New(Config{MatchShare: -1, IndexDelay: time.Hour})
		require.NoError(t, err)
		defer sim.Close()
		ask := func(f form) reply {
			r := httptest.NewRecorder()
			sim.ServeHTTP(r, f.request(t, "http://sim"))
			return reply{status: r.Code, body: r.Body.String()}
		}
		ask(upload(1, "x"))
		time.Sleep(time.Hour - 1) //nolint:forbidigo // the bubble's clock
		require.Nil(t, ask(clip("a.mp3", "x")).result(t))
		time.Sleep(time.Nanosecond) //nolint:forbidigo // the bubble's clock
		require.NotNil(t, ask(clip("a.mp3", "x")).result(t))
	})
}

func TestUploadsTakeEffectOnlyWhenChargedOrSuccessful(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		name   string
		rule   Rule
		stored bool
	}{
		{"success", Rule{}, true},
		{"51", Rule{Code: 51}, true},
		{"503 after the work", Rule{Status: 503}, true},
		{"503 before the work", Rule{Status: 503, Billed: new(false)}, false},
		{"a lost response", Rule{Fault: FaultResetAfterBody}, true},
		{"a reset within the body", Rule{Fault: FaultResetWithinBody}, false},
		{"bad audio, although charged", Rule{Code: 500}, false},
		{"no subscription", Rule{Code: 904}, false},
		{"429", Rule{Status: 429}, false},
		{"success free of charge", Rule{Billed: new(false)}, true},
	} {
		s := Start(t, Config{Rules: []Rule{c.rule}})
		send(t, s, upload(i, strings.Repeat("x", 2000)))
		proctest.Eventually(t, func() bool { return s.Bill().Requests == 1 }, c.name)
		require.Equal(t, c.stored, len(s.Catalog()) == 1, c.name)
		require.EqualValues(t, 1, s.Bill().Upload(int64(i)).Started, c.name)
	}
}

func TestSampleRulesAnswerByFileName(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{Rules: Samples()})
	require.Equal(t, "Paper Boats", send(t, s, clip("match-paper-boats.mp3", "x")).result(t)["title"])
	require.Nil(t, send(t, s, clip("nomatch.ogg", "x")).result(t))
	require.Nil(t, send(t, s, clip("unknown-hum.flac", "x")).result(t))
	require.Equal(t, 500, send(t, s, clip("broken-header.wav", "x")).code(t))
	for i, status := range []int{503, 503, 200, 200} {
		require.Equal(t, status, send(t, s, clip("flaky-radio.ogg", "x")).status, fmt.Sprint(i))
	}
	titles := map[string]bool{}
	for _, c := range scanOf(t, s, clip("long-mix.mp3", strings.Repeat("x", 16_000*180))).Result {
		titles[c.Songs[0].Title] = true
	}
	require.Len(t, titles, 3)
}
