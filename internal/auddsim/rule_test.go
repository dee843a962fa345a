package auddsim

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestRulesAreUnchangedByEncodingAndDecoding(t *testing.T) {
	t.Parallel()
	full := Rule{ID: "all", Path: PathRecognize, Method: "POST", Name: "*.mp3", Hash: "9f86", URL: "https://*", Token: "t",
		Headers: map[string]string{"X-A": "b*"}, Fields: map[string]string{"market": "us"}, AudioID: new(int64(0)),
		Skip: 1, Times: 2, Per: PerContent, Probability: 0.25, Code: 51, Message: "m", MessageBytes: []byte{0xff}, Result: ResultMatch,
		Songs: []Song{{Title: "t", Timecode: "00:01"}}, RawResult: json.RawMessage(`{"a":1}`), Status: 503, Body: "b", BodyBytes: []byte{0xfe},
		AnswerHeader: map[string]string{"Retry-After": "3"}, Fault: FaultSlowAnswer, After: 9, EOF: true, Early: false,
		Latency: 1500 * time.Millisecond, Over: 2 * time.Second, Duration: time.Hour, Billed: new(false)}
	for _, r := range append(Samples(), full, Rule{}) {
		data, err := json.Marshal(r)
		require.NoError(t, err)
		var back Rule
		require.NoError(t, json.Unmarshal(data, &back), string(data))
		require.Empty(t, cmp.Diff(r, back))
	}
}

func TestInvalidRulesAreRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a misspelt field":               `{"nam":"*"}`,
		"an unknown fault":               `{"fault":"explode"}`,
		"a wrong duration":               `{"latency":"fast"}`,
		"a hash before the body":         `{"hash":"00","fault":"reset_before_body"}`,
		"a count by content before it":   `{"per":"content","status":413,"early":true}`,
		"early without a status or code": `{"early":true}`,
		"a status beyond HTTP":           `{"status":600}`,
		"an informational status":        `{"status":101}`,
		"an unknown path":                `{"path":"recognise"}`,
		"two values":                     `{} {}`,
		"one wrong in a list":            `[{},{"result":"maybe"}]`,
		"a probability above one":        `{"probability":1.5}`,
		"an unknown way of counting":     `{"per":"moon"}`,
		"negative numbers":               `{"skip":-1}`,
		"a method that is not simulated": `{"method":"PUT"}`,
	} {
		_, err := parseRules([]byte(text))
		require.Error(t, err, name)
	}
	require.Panics(t, func() { Start(t).Rule(Rule{Status: 7}) })
	_, err := New(Config{Rules: []Rule{{Status: 7}}, Limits: Limits{Jitter: 2, Rate: -1}, MatchShare: 3})
	for _, text := range []string{"rule 1", "status", "jitter", "rate", "match_share"} {
		require.ErrorContains(t, err, text)
	}
}

func TestRulesActAccordingToCriteriaAndCounts(t *testing.T) {
	t.Parallel()
	answers := func(t *testing.T, rules []Rule, forms ...form) []int {
		s := Start(t, Config{Rules: rules})
		var out []int
		for _, f := range forms {
			out = append(out, send(t, s, f).status)
		}
		return out
	}
	a, b := clip("a.mp3", "a"), clip("b.mp3", "b")
	tagged := clip("a.mp3", "a")
	tagged.header = map[string]string{"X-Test": "yes"}
	link := form{fields: map[string]string{"api_token": "token-b", "url": "https://example.test/x.mp3?sig=1"}}
	for name, c := range map[string]struct {
		rule  Rule
		forms []form
		want  []int
	}{
		"name":                    {Rule{Name: "A*"}, []form{a, b, link}, []int{503, 200, 200}},
		"hash":                    {Rule{Hash: hashOf("b")}, []form{a, b}, []int{200, 503}},
		"beginning of a hash":     {Rule{Hash: hashOf("b")[:8]}, []form{a, b}, []int{200, 503}},
		"url":                     {Rule{URL: "*/x.mp3*"}, []form{a, link}, []int{200, 503}},
		"token":                   {Rule{Token: "token-b"}, []form{a, link}, []int{200, 503}},
		"header":                  {Rule{Headers: map[string]string{"x-test": "y?s"}}, []form{a, tagged}, []int{200, 503}},
		"field":                   {Rule{Fields: map[string]string{"url": "*"}}, []form{a, link}, []int{200, 503}},
		"path":                    {Rule{Path: PathUpload}, []form{a, upload(1, "a")}, []int{200, 503}},
		"audio_id":                {Rule{AudioID: new(int64(2))}, []form{upload(1, "a"), upload(2, "a")}, []int{200, 503}},
		"the first two":           {Rule{Times: 2}, []form{a, b, a, b}, []int{503, 503, 200, 200}},
		"the third":               {Rule{Skip: 2, Times: 1}, []form{a, a, a, a}, []int{200, 200, 503, 200}},
		"from the second on":      {Rule{Skip: 1}, []form{a, a, a}, []int{200, 503, 503}},
		"the first of each name":  {Rule{Times: 1, Per: PerName}, []form{a, b, a, b}, []int{503, 503, 200, 200}},
		"the first of each hash":  {Rule{Times: 1, Per: PerContent}, []form{a, b, a, tagged}, []int{503, 503, 200, 200}},
		"all criteria must hold":  {Rule{Name: "a*", Token: "token-b"}, []form{a, link}, []int{200, 200}},
		"only requests it counts": {Rule{Name: "b*", Times: 1}, []form{a, a, b, b}, []int{200, 200, 503, 200}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.rule.Status = 503
			require.Equal(t, c.want, answers(t, []Rule{c.rule}, c.forms...))
			if c.rule.Hash == "" && c.rule.Per != PerContent {
				c.rule.Early = true
				require.Equal(t, c.want, answers(t, []Rule{c.rule}, c.forms...), "early")
			}
		})
	}
	require.Equal(t, []int{503, 404, 403}, answers(t, []Rule{{Times: 1, Status: 503}, {Times: 1, Status: 404}, {Status: 403}}, a, a, a), "in order")
}

func TestProbabilityIsTheShareOfRequestsARuleActsOn(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) (used int, pattern string) {
		set := &ruleSet{seed: seed}
		set.add(Rule{Probability: 0.3})
		for range 2000 {
			if set.pick(&subject{}, func(*Rule) bool { return true }) != nil {
				used++
				pattern += "x"
			} else {
				pattern += "."
			}
		}
		return used, pattern
	}
	used, pattern := run(1)
	require.InDelta(t, 600, used, 80)
	_, again := run(1)
	require.Equal(t, pattern, again)
	_, other := run(2)
	require.NotEqual(t, pattern, other)
}

func TestPatternsMatchWithWildcardsAndIgnoreCase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true}, {"", "", true}, {"", "a", false}, {"a?c", "abc", true}, {"a?c", "ac", false}, {"*match*", "a/match.MP3", true},
		{"*.mp3", "a.mp3.ogg", false}, {"a*b*c", "a1b2b3c", true}, {"a*b*c", "a1c2b", false}, {"**", "x", true}, {"a[1]*", "A[1].mp3", true}, {`a\b`, `a\b`, true}, {"?", "", false},
	} {
		require.Equal(t, c.want, globMatch(c.pattern, c.text), "%s %s", c.pattern, c.text)
	}
}

func TestRulesAreChangedOverHTTPAndReadFromAFile(t *testing.T) {
	t.Parallel()
	s := Start(t)
	var ids struct{ IDs []string }
	require.Equal(t, 200, admin(t, s, "POST", "rules", `[{"name":"a*","status":503,"times":1},{"id":"mine","code":300}]`, &ids))
	require.Equal(t, []string{"rule-1", "mine"}, ids.IDs)
	require.Equal(t, 503, send(t, s, clip("a.mp3", "x")).status)
	require.Equal(t, 300, send(t, s, clip("a.mp3", "x")).code(t))
	require.Equal(t, 200, admin(t, s, "POST", "rules", `{"id":"mine","code":500}`, nil))
	require.Equal(t, 500, send(t, s, clip("a.mp3", "x")).code(t))

	var states []RuleState
	require.Equal(t, 200, admin(t, s, "GET", "rules", "", &states))
	require.Len(t, states, 2)
	require.EqualValues(t, 3, states[0].Seen)
	require.EqualValues(t, 1, states[0].Used)
	require.Equal(t, 400, admin(t, s, "PUT", "rules", `[{"code":1},{"status":1}]`, nil))
	require.Len(t, s.Rules(), 2, "a wrong list changes nothing")
	require.Equal(t, 200, admin(t, s, "PUT", "rules", `[{"code":907}]`, nil))
	require.Equal(t, 907, send(t, s, clip("a.mp3", "x")).code(t))
	require.Equal(t, 200, admin(t, s, "DELETE", "rules", "", nil))
	require.Empty(t, s.Rules())

	file := filepath.Join(t.TempDir(), "rules.json")
	require.NoError(t, os.WriteFile(file, []byte(`[{"code":300}]`), 0o600))
	rules, err := LoadRules(file)
	require.NoError(t, err)
	require.Equal(t, []Rule{{Code: 300}}, rules)
	require.NoError(t, os.WriteFile(file, []byte(`[{"cod":300}]`), 0o600))
	_, err = LoadRules(file)
	require.ErrorContains(t, err, file)
	_, err = LoadRules(file + ".missing")
	require.ErrorIs(t, err, os.ErrNotExist)
}
