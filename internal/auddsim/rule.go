package auddsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// Fault is a way to fail. The reset_* faults end the connection without a response, the others change the response.
type Fault string

// Every Fault.
const (
	FaultResetBeforeBody   Fault = "reset_before_body"   // before any audio is read
	FaultResetWithinBody   Fault = "reset_within_body"   // after Rule.After bytes of the body (0: half of it)
	FaultResetAfterBody    Fault = "reset_after_body"    // after the work, which is billed; no latency
	FaultResetBeforeAnswer Fault = "reset_before_answer" // the same after the latency
	FaultSlowAnswer        Fault = "slow_answer"         // sends the response piece by piece during Rule.Over
	FaultTruncated         Fault = "truncated"           // half of the JSON in a complete HTTP response
	FaultCutAnswer         Fault = "cut_answer"          // half of the promised bytes, then the connection ends
	FaultGzip              Fault = "gzip"                // Content-Encoding: gzip, whether or not it was requested
	FaultText              Fault = "body_text"           // HTTP 200 with plain text
	FaultEmpty             Fault = "body_empty"          // HTTP 200 without a body
	FaultArray             Fault = "body_array"          // HTTP 200 with a JSON array
	FaultNoStatus          Fault = "body_no_status"      // HTTP 200 with an object that has no status
)

var faults = []Fault{"", FaultResetBeforeBody, FaultResetWithinBody, FaultResetAfterBody, FaultResetBeforeAnswer, FaultSlowAnswer,
	FaultTruncated, FaultCutAnswer, FaultGzip, FaultText, FaultEmpty, FaultArray, FaultNoStatus}

// Values of Rule.Result.
const (
	ResultMatch  = "match"  // a song: Rule.Songs, else one made from the content
	ResultNull   = "null"   // null (recognize, upload) or an empty list (enterprise)
	ResultAbsent = "absent" // no result key
)

// Values of Rule.Per.
const (
	PerRule    = "rule"    // one count for the rule
	PerName    = "name"    // one count for each file name or URL
	PerContent = "content" // one count for each content hash
)

// Rule changes the response to the requests that it matches. All criteria that are set must match. Of the list, the first
// rule acts that matches and whose count allows it. Patterns know * (any text) and ? (one byte) and ignore case.
type Rule struct {
	ID string `json:"id,omitempty"` // empty: rule-N

	// Criteria.

	Path    string            `json:"path,omitempty"`     // recognize, enterprise, upload, streams; empty: any
	Method  string            `json:"method,omitempty"`   // GET or POST; empty: any
	Name    string            `json:"name,omitempty"`     // pattern for the base name of the file
	Hash    string            `json:"hash,omitempty"`     // hex SHA-256 of the content (of the text of a URL), or a prefix of it
	URL     string            `json:"url,omitempty"`      // pattern for the url field
	Token   string            `json:"token,omitempty"`    // exact
	Headers map[string]string `json:"headers,omitempty"`  // header name → pattern
	Fields  map[string]string `json:"fields,omitempty"`   // form field → pattern
	AudioID *int64            `json:"audio_id,omitempty"` // slot of an upload

	// Which of the matching requests it acts on.

	Skip        int     `json:"skip,omitempty"`        // not on the first so many (the nth only: Skip n−1, Times 1)
	Times       int     `json:"times,omitempty"`       // on so many after that; 0: all
	Per         string  `json:"per,omitempty"`         // what Skip and Times count: rule (default), name, content
	Probability float64 `json:"probability,omitempty"` // on this share of them, chosen by Config.Seed; 0: all

	// What it changes.

	Code         int               `json:"code,omitempty"`           // AudD error code
	Message      string            `json:"message,omitempty"`        // its text; empty: AudD's usual one
	MessageBytes []byte            `json:"message_bytes,omitempty"`  // its text as bytes (base64 in JSON), sent even if not UTF-8
	Result       string            `json:"result,omitempty"`         // match, null, absent; empty: by the content, none beside a Code
	Songs        []Song            `json:"songs,omitempty"`          // the songs of a match; enterprise spreads them over its chunks
	RawResult    json.RawMessage   `json:"raw_result,omitempty"`     // the result value; overrides Result and Songs
	Status       int               `json:"status,omitempty"`         // HTTP status; without Code the body is an HTML page, Body or BodyBytes
	Body         string            `json:"body,omitempty"`           // the whole body
	BodyBytes    []byte            `json:"body_bytes,omitempty"`     // the whole body as bytes (base64 in JSON)
	AnswerHeader map[string]string `json:"answer_headers,omitempty"` // Retry-After, Location, Content-Type …
	Fault        Fault             `json:"fault,omitempty"`
	After        int64             `json:"after,omitempty"` // bytes, for reset_within_body
	EOF          bool              `json:"eof,omitempty"`   // resets end with FIN instead of RST
	Early        bool              `json:"early,omitempty"` // respond without reading the audio (needs Status or Code)

	Latency  time.Duration `json:"-"` // "latency" in JSON; 0: that of Limits
	Over     time.Duration `json:"-"` // "over": how long slow_answer takes; 0: 1 s
	Duration time.Duration `json:"-"` // "duration": length of the audio for enterprise; 0: estimated

	// Billed decides whether the request is charged. nil: as doc.go says under "What is charged".
	Billed *bool `json:"billed,omitempty"`
}

type plainRule Rule

// json returns a value that reads and writes the rule as JSON, with the durations as text.
func (r *Rule) json() any {
	return &struct {
		*plainRule
		Latency  *jsonDuration `json:"latency,omitzero"`
		Over     *jsonDuration `json:"over,omitzero"`
		Duration *jsonDuration `json:"duration,omitzero"`
	}{(*plainRule)(r), (*jsonDuration)(&r.Latency), (*jsonDuration)(&r.Over), (*jsonDuration)(&r.Duration)}
}

// MarshalJSON writes durations as text ("1.5s") and omits zero fields.
func (r Rule) MarshalJSON() ([]byte, error) { return json.Marshal(r.json()) }

// UnmarshalJSON refuses unknown fields, because a rule with a misspelt criterion would match too much.
func (r *Rule) UnmarshalJSON(data []byte) error {
	if err := decodeStrict(data, r.json()); err != nil {
		return fmt.Errorf("read rule: %w", err)
	}
	return nil
}

// Validate reports every field out of range, and fields that contradict each other.
func (r Rule) Validate() error {
	var all checks
	all.require(r.Path == "" || metered(r.Path) || r.Path == PathStreams || r.Path == PathOther, "path is unknown")
	all.require(r.Method == "" || r.Method == http.MethodGet || r.Method == http.MethodPost, "method must be GET or POST")
	all.require(r.Skip >= 0 && r.Times >= 0, "skip and times must not be negative")
	all.require(slices.Contains([]string{"", PerRule, PerName, PerContent}, r.Per), "per must be rule, name or content")
	all.require(r.Probability >= 0 && r.Probability <= 1, "probability must be between 0 and 1")
	all.require(slices.Contains([]string{"", ResultMatch, ResultNull, ResultAbsent}, r.Result), "result must be match, null or absent")
	all.require(r.Status == 0 || r.Status >= 200 && r.Status <= 599, "status must be between 200 and 599")
	all.require(slices.Contains(faults, r.Fault), fmt.Sprintf("fault %q is unknown", r.Fault))
	all.require(r.After >= 0 && r.Latency >= 0 && r.Over >= 0 && r.Duration >= 0, "after, latency, over and duration must not be negative")
	all.require(!r.early() || r.Hash == "" && r.Per != PerContent, "a rule that acts before the body cannot depend on the content")
	all.require(!r.Early || r.Status != 0 || r.Code != 0, "early needs a status or a code")
	all.require(len(r.RawResult) == 0 || json.Valid(r.RawResult), "raw_result must be JSON")
	return all.err()
}

func validateRules(rules []Rule) error {
	var errs []error
	for i, r := range rules {
		if err := r.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("rule %d (%s): %w", i+1, r.ID, err))
		}
	}
	return errors.Join(errs...)
}

// early reports whether the rule acts before the audio is read.
func (r Rule) early() bool {
	return r.Early || r.Fault == FaultResetBeforeBody || r.Fault == FaultResetWithinBody
}

// needsFields reports whether a criterion is known only after form fields were read.
func (r Rule) needsFields() bool {
	return r.Name != "" || r.URL != "" || r.Token != "" || len(r.Fields) > 0 || r.AudioID != nil || r.Per == PerName
}

// edge reports whether the response comes from a server in front of AudD, which does not check tokens.
func (r Rule) edge() bool {
	return r.Status != 0 || strings.HasPrefix(string(r.Fault), "reset_")
}

// LoadRules reads a JSON list of rules from a file and validates them.
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

// parseRules takes one rule or a list.
func parseRules(data []byte) ([]Rule, error) {
	data = bytes.TrimSpace(data)
	if bytes.HasPrefix(data, []byte("{")) {
		data = slices.Concat([]byte("["), data, []byte("]"))
	}
	var rules []Rule
	if err := decodeStrict(data, &rules); err != nil {
		return nil, err
	}
	return rules, validateRules(rules)
}
