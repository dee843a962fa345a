package auddsim

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"reprise/internal/proctest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestChargeDependsOnCodeAndStatus(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule  Rule
		units int64
	}{
		"match":                    {Rule{Result: ResultMatch}, 1},
		"no match":                 {Rule{Result: ResultNull}, 1},
		"51":                       {Rule{Code: 51}, 1},
		"100":                      {Rule{Code: 100}, 1},
		"300":                      {Rule{Code: 300}, 1},
		"400":                      {Rule{Code: 400}, 1},
		"500":                      {Rule{Code: 500}, 1},
		"907":                      {Rule{Code: 907}, 1},
		"19":                       {Rule{Code: 19}, 0},
		"611":                      {Rule{Code: 611}, 0},
		"700":                      {Rule{Code: 700}, 0},
		"900":                      {Rule{Code: 900}, 0},
		"902":                      {Rule{Code: 902}, 0},
		"904":                      {Rule{Code: 904}, 0},
		"HTTP 429":                 {Rule{Status: 429}, 0},
		"HTTP 413":                 {Rule{Status: 413}, 0},
		"HTTP 403":                 {Rule{Status: 403}, 0},
		"HTTP 307":                 {Rule{Status: 307}, 0},
		"HTTP 408":                 {Rule{Status: 408}, 1},
		"HTTP 503":                 {Rule{Status: 503}, 1},
		"HTTP 503 before the work": {Rule{Status: 503, Billed: new(false)}, 0},
		"HTTP 503 early":           {Rule{Status: 503, Early: true}, 0},
		"900 that is charged":      {Rule{Code: 900, Billed: new(true)}, 1},
		"empty 200":                {Rule{Fault: FaultEmpty}, 1},
		"truncated":                {Rule{Fault: FaultTruncated}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Start(t, Config{Tokens: []string{"token-a"}, Rules: []Rule{c.rule}})
			require.NoError(t, send(t, s, clip("a.mp3", "data")).err)
			require.Equal(t, c.units, s.Bill().Units)
			stranger := clip("a.mp3", "data")
			stranger.fields["api_token"] = "stranger"
			require.NoError(t, send(t, s, stranger).err)
			require.Equal(t, c.units, s.Bill().Units, "an invalid token is never charged")
		})
	}
}

func TestBillSumsByTokenPathAndContent(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{MatchShare: 1})
	other := clip("two.mp3", "two")
	other.fields["api_token"] = "token-b"
	for _, f := range []form{clip("one.mp3", "one"), clip("one.mp3", "one"), other, upload(5, "one"), clip("empty.mp3", "")} {
		require.NoError(t, send(t, s, f).err)
	}
	b := s.Bill()
	require.EqualValues(t, 5, b.Units)
	require.Equal(t, map[string]int64{"token-a": 4, "token-b": 1}, b.ByToken)
	require.Equal(t, map[string]int64{PathRecognize: 4, PathUpload: 1}, b.ByPath)
	require.Equal(t, map[string]int64{"match": 3, "uploaded": 1, "code_300": 1}, b.Outcomes)
	one := b.Content(PathRecognize, hashOf("one"))
	require.EqualValues(t, 2, one.Units)
	require.EqualValues(t, 2, one.Requests)
	require.EqualValues(t, 2, one.Complete)
	require.EqualValues(t, 1, b.Content(PathUpload, hashOf("one")).Charges)

	var overHTTP Bill
	require.Equal(t, 200, admin(t, s, "GET", "bill", "", &overHTTP))
	require.Equal(t, s.Bill(), overHTTP)
	require.EqualValues(t, 5, overHTTP.Requests, "administration is never counted")

	var sums Bill
	require.Equal(t, 200, admin(t, s, "GET", "bill?lines=0", "", &sums))
	require.Equal(t, s.Sums(), sums)
	require.EqualValues(t, 5, sums.Units)
	require.Empty(t, sums.Contents)

	require.Equal(t, 200, admin(t, s, "POST", "reset", "", nil))
	require.Zero(t, s.Bill().Units)
	require.Empty(t, s.Requests(Filter{}))
	require.Empty(t, s.Catalog())
}

func TestTokenIsRefusedWhenItsQuotaIsUsedUp(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{Quota: 3})
	for range 3 {
		require.Zero(t, send(t, s, clip("a.mp3", "x")).code(t))
	}
	require.Equal(t, 902, send(t, s, clip("a.mp3", "x")).code(t))
	require.EqualValues(t, 3, s.Bill().Units)
	require.Equal(t, 200, admin(t, s, "POST", "tokens", `{"token":"token-a","quota":4}`, nil))
	require.Zero(t, send(t, s, clip("a.mp3", "x")).code(t))
	require.Equal(t, 902, send(t, s, clip("a.mp3", "x")).code(t))
}

func TestClientThatLeavesAfterTheBodyIsCharged(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{Limits: Limits{Latency: time.Hour}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for s.Bill().Units == 0 && ctx.Err() == nil {
			<-tick.C
		}
		cancel()
	}()
	r := do(newClient(t), clip("a.mp3", "x").request(t, s.URL).WithContext(ctx))
	require.ErrorIs(t, r.err, context.Canceled)
	proctest.Eventually(t, func() bool { return s.Bill().Outcomes[OutcomeClientGone] == 1 })
	require.EqualValues(t, 1, s.Bill().Units)
	require.EqualValues(t, 1, s.Bill().Complete)
}

func TestClientThatLeavesWithinTheBodyIsPartialAndNotCharged(t *testing.T) {
	t.Parallel()
	s := Start(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	require.NoError(t, err)
	body := "--b\r\nContent-Disposition: form-data; name=\"api_token\"\r\n\r\ntoken-a\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"audio_id\"\r\n\r\n77\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"half.mp3\"\r\n\r\nhalf of it"
	_, err = conn.Write([]byte("POST /upload/ HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n\r\n" + body))
	require.NoError(t, err)
	proctest.Eventually(t, func() bool { return s.Bill().Upload(77).Started == 1 }, "a running upload is counted")
	require.EqualValues(t, 1, s.Bill().Active)
	require.NoError(t, conn.Close())
	proctest.Eventually(t, func() bool { return s.Bill().Partial == 1 })
	b := s.Bill()
	require.Zero(t, b.Units)
	require.EqualValues(t, 1, b.Upload(77).Partial)
	require.Empty(t, s.Catalog())
	got := s.Requests(Filter{AudioID: new(int64(77))})
	require.Len(t, got, 1)
	require.Equal(t, "half.mp3", got[0].Name)
	require.EqualValues(t, len(body), got[0].BodyBytes)
	require.False(t, got[0].Complete)
	require.Empty(t, got[0].Hash)
}

func TestBillContainsARequestWhenItsResponseArrives(t *testing.T) {
	t.Parallel()
	s := Start(t)
	client := newClient(t)
	for i := range 300 {
		require.NoError(t, do(client, clip("a.mp3", itoa(i)).request(t, s.URL)).err)
		b := s.Bill()
		require.EqualValues(t, i+1, b.Units)
		require.EqualValues(t, i+1, b.Requests)
		require.Zero(t, b.Active)
	}
}

func TestLogKeepsTheLatestRequestsWithoutSecrets(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{LogSize: 3, LogHeaders: []string{"User-Agent"}})
	for i := range 5 {
		f := clip("clip-"+itoa(i)+".mp3", itoa(i))
		f.header = map[string]string{"User-Agent": "agent/" + itoa(i)}
		require.NoError(t, send(t, s, f).err)
	}
	f := form{fields: map[string]string{"api_token": "token-a", "url": "https://user:pw@example.test/a.mp3?sig=secret"}}
	require.NoError(t, send(t, s, f).err)
	all := s.Requests(Filter{})
	require.Len(t, all, 3)
	require.Equal(t, "clip-3.mp3", all[0].Name)
	require.Equal(t, "agent/3", all[0].Headers["User-Agent"])
	require.Equal(t, "t***a", all[0].Token)
	require.Equal(t, "https://example.test/a.mp3", all[2].URL)
	require.Equal(t, http.StatusOK, all[2].Status)

	var overHTTP []Request
	require.Equal(t, 200, admin(t, s, "GET", "requests?name=clip-4*&path=recognize&after=1&limit=10", "", &overHTTP))
	require.Len(t, overHTTP, 1)
	require.Equal(t, hashOf("4"), overHTTP[0].Hash)
	require.Equal(t, 400, admin(t, s, "GET", "requests?limit=many", "", nil))
	data, err := json.Marshal(all)
	require.NoError(t, err)
	require.NotContains(t, string(data), "token-a")
	require.NotContains(t, string(data), "secret")
}
