package auddsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// Fault is a way to go wrong. The reset_* faults end the connection without an answer, the others spoil the answer.
type Fault string

// Every fault there is.
const (
	FaultResetBeforeBody   Fault = "reset_before_body"   // nothing of the audio is read
	FaultResetWithinBody   Fault = "reset_within_body"   // after Rule.After bytes of the body (0: half of it)
	FaultResetAfterBody    Fault = "reset_after_body"    // the work is done and billed, no latency, no answer
	FaultResetBeforeAnswer Fault = "reset_before_answer" // the same after the latency
	FaultSlowAnswer        Fault = "slow_answer"         // the answer takes Rule.Over to come out, piece by piece
	FaultTruncated         Fault = "truncated"           // half of the JSON in a complete HTTP answer
	FaultCutAnswer         Fault = "cut_answer"          // half of the promised bytes, then the connection ends
	FaultGzip              Fault = "gzip"                // Content-Encoding: gzip, whatever was asked for
	FaultText              Fault = "body_text"           // HTTP 200 with plain text
	FaultEmpty             Fault = "body_empty"          // HTTP 200 with no byte
	FaultArray             Fault = "body_array"          // HTTP 200 with a JSON array
	FaultNoStatus          Fault = "body_no_status"      // HTTP 200 with an object that lacks status
)

var faults = map[Fault]bool{"": true, FaultResetBeforeBody: true, FaultResetWithinBody: true, FaultResetAfterBody: true,
	FaultResetBeforeAnswer: true, FaultSlowAnswer: true, FaultTruncated: true, FaultCutAnswer: true, FaultGzip: true,
	FaultText: true, FaultEmpty: true, FaultArray: true, FaultNoStatus: true}

// Values of Rule.Result.
const (
	ResultMatch  = "match"  // a song: Rule.Songs, else one made from the content
	ResultNull   = "null"   // null (recognize, upload) or an empty list (enterprise)
	ResultAbsent = "absent" // no result key at all
)

// Values of Rule.Per.
const (
	PerRule    = "rule"    // one count for all requests of the rule
	PerName    = "name"    // a count for each file name or URL
	PerContent = "content" // a count for each content hash
)

// Rule changes the answer to the requests it matches. Every criterion that is set must hold; the first rule in the list
// that matches and whose count allows it wins. Patterns know * (any text) and ? (one character) and ignore case.
type Rule struct {
	ID string `json:"id,omitempty"` // given if empty

	Path    string            `json:"path,omitempty"`     // recognize, enterprise, upload, streams; empty: any
	Method  string            `json:"method,omitempty"`   // GET or POST; empty: any
	Name    string            `json:"name,omitempty"`     // pattern for the base name of the file sent
	Hash    string            `json:"hash,omitempty"`     // hex SHA-256 of the content (for a URL: of its text), or the beginning of it
	URL     string            `json:"url,omitempty"`      // pattern for the url field
	Token   string            `json:"token,omitempty"`    // exact
	Headers map[string]string `json:"headers,omitempty"`  // header name → pattern
	Fields  map[string]string `json:"fields,omitempty"`   // form field → pattern
	AudioID *int64            `json:"audio_id,omitempty"` // upload's slot

	Skip        int     `json:"skip,omitempty"`        // let so many matching requests through first (the nth: Skip n−1, Times 1)
	Times       int     `json:"times,omitempty"`       // then act so many times; 0: always
	Per         string  `json:"per,omitempty"`         // what Skip and Times count by: rule (default), name, content
	Probability float64 `json:"probability,omitempty"` // act on this share of them, by seeded coin; 0: all

	Code         int               `json:"code,omitempty"`           // AudD error code
	Message      string            `json:"message,omitempty"`        // its text; empty: AudD's usual one
	MessageBytes []byte            `json:"message_bytes,omitempty"`  // the same as bytes (base64 in JSON), sent raw even if not UTF-8
	Result       string            `json:"result,omitempty"`         // match, null, absent; empty: what the content gives, none beside a Code
	Songs        []Song            `json:"songs,omitempty"`          // what a match is; enterprise spreads them over its chunks
	RawResult    json.RawMessage   `json:"raw_result,omitempty"`     // the result value as it is, before Result and Songs
	Status       int               `json:"status,omitempty"`         // HTTP status; without Code the body is an HTML page, Body or BodyBytes
	Body         string            `json:"body,omitempty"`           // the whole body
	BodyBytes    []byte            `json:"body_bytes,omitempty"`     // the same as bytes (base64 in JSON)
	AnswerHeader map[string]string `json:"answer_headers,omitempty"` // Retry-After, Location, Content-Type …
	Fault        Fault             `json:"fault,omitempty"`
	After        int64             `json:"after,omitempty"` // bytes, for reset_within_body
	EOF          bool              `json:"eof,omitempty"`   // resets end with FIN instead of RST
	Early        bool              `json:"early,omitempty"` // answer without reading the audio (needs Status or Code)

	Latency  time.Duration `json:"-"` // "latency" in JSON; instead of the configured one, 0: that one
	Over     time.Duration `json:"-"` // "over": how long slow_answer takes, 0: 1 s
	Duration time.Duration `json:"-"` // "duration": length of the audio for enterprise, 0: estimated

	// Billed decides whether the request is charged. nil: charged once the whole body was received with a good token and
	// the work was begun; see doc.go.
	Billed *bool `json:"billed,omitempty"`
}

type plainRule Rule

// ruleJSON adds the durations, as text, to the plain fields.
type ruleJSON struct {
	plainRule
	Latency  string `json:"latency,omitempty"`
	Over     string `json:"over,omitempty"`
	Duration string `json:"duration,omitempty"`
}

// MarshalJSON writes durations as text ("1.5s") and leaves zero fields out.
func (r Rule) MarshalJSON() ([]byte, error) {
	return json.Marshal(ruleJSON{plainRule(r), durationText(r.Latency), durationText(r.Over), durationText(r.Duration)})
}

// UnmarshalJSON refuses unknown fields, so that a misspelt criterion never widens a rule.
func (r *Rule) UnmarshalJSON(data []byte) error {
	var in ruleJSON
	if err := decodeStrict(data, &in); err != nil {
		return fmt.Errorf("read rule: %w", err)
	}
	*r = Rule(in.plainRule)
	return errors.Join(setDuration(&r.Latency, &in.Latency, "latency"), setDuration(&r.Over, &in.Over, "over"),
		setDuration(&r.Duration, &in.Duration, "duration"))
}

func durationText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// Validate reports what does not fit together.
func (r Rule) Validate() error {
	var errs []error
	check := func(ok bool, text string) {
		if !ok {
			errs = append(errs, errors.New(text))
		}
	}
	check(r.Path == "" || metered(r.Path) || r.Path == PathStreams || r.Path == PathOther, "path is unknown")
	check(r.Method == "" || r.Method == http.MethodGet || r.Method == http.MethodPost, "method must be GET or POST")
	check(r.Skip >= 0 && r.Times >= 0, "skip and times must not be negative")
	check(r.Per == "" || r.Per == PerRule || r.Per == PerName || r.Per == PerContent, "per must be rule, name or content")
	check(r.Probability >= 0 && r.Probability <= 1, "probability must be between 0 and 1")
	check(r.Result == "" || r.Result == ResultMatch || r.Result == ResultNull || r.Result == ResultAbsent, "result must be match, null or absent")
	check(r.Status == 0 || r.Status >= 200 && r.Status <= 599, "status must be between 200 and 599")
	check(faults[r.Fault], fmt.Sprintf("fault %q is unknown", r.Fault))
	check(r.After >= 0 && r.Latency >= 0 && r.Over >= 0 && r.Duration >= 0, "after, latency, over and duration must not be negative")
	check(!r.early() || r.Hash == "" && r.Per != PerContent, "a rule that acts before the body cannot depend on the content")
	check(!r.Early || r.Status != 0 || r.Code != 0, "early needs a status or a code")
	check(len(r.RawResult) == 0 || json.Valid(r.RawResult), "raw_result must be JSON")
	return errors.Join(errs...)
}

// early reports whether the rule acts before the audio is read.
func (r Rule) early() bool {
	return r.Early || r.Fault == FaultResetBeforeBody || r.Fault == FaultResetWithinBody
}

// named reports whether a criterion is known only once form fields were read.
func (r Rule) named() bool {
	return r.Name != "" || r.URL != "" || r.Token != "" || len(r.Fields) > 0 || r.AudioID != nil || r.Per == PerName
}

// edge reports whether the answer comes from in front of AudD, where tokens are not looked at.
func (r Rule) edge() bool {
	return r.Status != 0 || strings.HasPrefix(string(r.Fault), "reset_")
}

// LoadRules reads a JSON list of rules from a file and checks them.
func LoadRules(file string) ([]Rule, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	rules, err := parseRules(data)
	if err != nil {
		return nil, fmt.Errorf("read rules of %s: %w", file, err)
	}
	return rules, nil
}

// parseRules takes a list of rules or a single one.
func parseRules(data []byte) ([]Rule, error) {
	var rules []Rule
	var err error
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' {
		rules = make([]Rule, 1)
		err = decodeStrict(trimmed, &rules[0])
	} else {
		err = decodeStrict(trimmed, &rules)
	}
	if err != nil {
		return nil, err
	}
	for i, r := range rules {
		if err := r.Validate(); err != nil {
			return nil, fmt.Errorf("check rule %d (%s): %w", i+1, r.ID, err)
		}
	}
	return rules, nil
}

// decodeStrict reads exactly one JSON value and refuses unknown fields.
func decodeStrict(data []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(to); err != nil {
		return fmt.Errorf("decode JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("decode JSON: more than one value")
	}
	return nil
}
