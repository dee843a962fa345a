package ops

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/admission"
	"reprise/internal/text"
	"reprise/tasks"
)

// RateLimits are the names of the limits that apply to a source and path, or to the global scope.
var RateLimits = []string{
	"concurrency", "requests_per_minute", "request_burst", "units_per_minute", "unit_burst", "units_per_day", "units_per_month",
}

// GroupLimits are the limits of a group.
var GroupLimits = []string{"weight", "ceiling", "slot_share", "units_per_day", "units_per_month", "source"}

type tuningLimit struct{ name, meaning string }

// tuning lists the limits of AIMD and the circuit breaker with their meanings.
var tuning = []tuningLimit{
	{"aimd", "learn concurrency and rate from throttles"},
	{"aimd_start", "calls in flight at first"},
	{"aimd_floor", "fewest calls in flight"},
	{"aimd_max", "most calls in flight if no concurrency is set"},
	{"breaker_failures", "consecutive failures that open the breaker"},
	{"breaker_window", "a success this recent keeps the breaker closed"},
	{"breaker_cooldown", "time until the first probe"},
	{"breaker_cooldown_max", "longest wait between probes"},
	{"breaker_auth_failures", "consecutive authentication failures that halt the account"},
	{"breaker_not_found", "consecutive 404 responses that halt the account"},
	{"breaker_probe_quota", "time between probes of a quota or subscription halt"},
	{"breaker_probe_blocked", "time between probes of a temporary block"},
}

// TuningLimits are the limits of AIMD and the circuit breaker.
func TuningLimits() []string {
	return mapped(tuning, func(t tuningLimit) string { return t.name })
}

// durations are the limits that Redis stores in milliseconds.
var durations = []string{"breaker_window", "breaker_cooldown", "breaker_cooldown_max", "breaker_probe_quota", "breaker_probe_blocked"}

// shares are the limits that Redis stores per mille.
var shares = []string{"ceiling", "slot_share"}

// Limit is a value in force.
type Limit struct {
	Scope string `json:"scope"` // main/recognize, global, group/ugc or tuning
	Name  string `json:"name"`
	// Value is a number; a share is a fraction, a group's source a name ("" = any).
	Value   any    `json:"value"`
	Unit    string `json:"unit,omitempty"` // ms
	Text    string `json:"text"`           // as an operator writes it: 3,000, 70%, 10s, off
	Meaning string `json:"meaning,omitempty"`
}

// unset returns the value of a limit that was never written.
func unset(name string) string {
	switch name {
	case "weight":
		return "1"
	case "source":
		return "any"
	}
	return "off"
}

func limitOf(l admission.Limit) Limit {
	out := Limit{Scope: scopeText(l.Scope), Name: l.Name, Value: l.Value, Text: valueText(l)}
	for _, t := range tuning {
		if l.Scope == admission.ScopeTuning && t.name == l.Name {
			out.Meaning = t.meaning
		}
	}
	n, err := strconv.ParseInt(l.Value, 10, 64)
	switch {
	case l.Name == "source" || err != nil:
	case slices.Contains(durations, l.Name):
		out.Value, out.Unit = n, "ms"
	case slices.Contains(shares, l.Name):
		out.Value = float64(n) / 1000
	default:
		out.Value = n
	}
	return out
}

// valueText returns a value in the notation of Set.
func valueText(l admission.Limit) string {
	n, err := strconv.ParseInt(l.Value, 10, 64)
	switch {
	case l.Name == "source" || err != nil:
		return cmp.Or(text.Printable(l.Value), unset(l.Name))
	case l.Name == "aimd" && n == 1:
		return "on"
	case l.Name == "weight":
		return l.Value
	case n == 0:
		return "off"
	case slices.Contains(shares, l.Name):
		return strconv.FormatFloat(float64(n)/10, 'f', -1, 64) + "%"
	case slices.Contains(durations, l.Name):
		return (time.Duration(n) * time.Millisecond).String()
	}
	return text.Thousands(n)
}

// scopeText returns a scope in the notation of Set.
func scopeText(scope string) string { return strings.Replace(scope, ":", "/", 1) }

// parseLimit reads SCOPE.NAME=VALUE or SCOPE/NAME=VALUE, such as main/recognize.concurrency=20,
// global.requests_per_minute=3000, group/archive.ceiling=70% or tuning.aimd=off.
func parseLimit(assignment string, sources []string) (admission.Limit, error) {
	left, value, _ := strings.Cut(assignment, "=")
	cut := strings.LastIndexAny(left, "./")
	if strings.Contains(left, ".") {
		cut = strings.LastIndex(left, ".")
	}
	if value == "" || cut <= 0 || cut == len(left)-1 {
		return admission.Limit{}, fmt.Errorf("%s: expected SCOPE.LIMIT=VALUE, such as main/recognize.concurrency=20", text.Printable(assignment))
	}
	scope, known, err := parseScope(left[:cut], sources)
	if err != nil {
		return admission.Limit{}, err
	}
	name := left[cut+1:]
	if !slices.Contains(known, name) {
		return admission.Limit{}, fmt.Errorf("%s has no limit %s%s", left[:cut], text.Printable(name), text.DidYouMean(name, known))
	}
	if value, err = parseValue(name, strings.TrimSpace(value)); err != nil {
		return admission.Limit{}, fmt.Errorf("%s: %w", left, err)
	}
	if name == "source" && value != "" {
		if err := (target{source: value}).check(sources); err != nil {
			return admission.Limit{}, err
		}
	}
	return admission.Limit{Scope: scope, Name: name, Value: value}, nil
}

// parseScope returns how Redis stores a scope, and the names of its limits.
func parseScope(scope string, sources []string) (stored string, known []string, err error) {
	switch scope {
	case admission.ScopeGlobal:
		return admission.ScopeGlobal, RateLimits, nil
	case admission.ScopeTuning:
		return admission.ScopeTuning, TuningLimits(), nil
	}
	if group, ok := strings.CutPrefix(scope, admission.ScopeOfGroup("")); ok {
		if err := tasks.ValidateGroup(group); err != nil || group == "" {
			return "", nil, fmt.Errorf("%s: expected group/NAME with lower-case letters, digits, - and _", text.Printable(scope))
		}
		return admission.ScopeOfGroup(group), GroupLimits, nil
	}
	source, path, found := strings.Cut(strings.Replace(scope, ":", "/", 1), "/")
	if !found {
		scopes := []string{admission.ScopeGlobal, admission.ScopeTuning}
		for _, s := range sources {
			for _, p := range pathNames() {
				scopes = append(scopes, s+"/"+p)
			}
		}
		return "", nil, fmt.Errorf("no scope %s%s (SOURCE/PATH, global, group/NAME or tuning)", text.Printable(scope), text.DidYouMean(scope, scopes))
	}
	t := target{cmp.Or(source, "?"), tasks.Path(cmp.Or(path, "?"))}
	return admission.ScopeOf(source, t.path), RateLimits, t.check(sources)
}

// parseValue converts a value from the notation of Set to the one of Redis.
func parseValue(name, value string) (string, error) {
	switch {
	case name == "source":
		if value == "none" || value == "any" {
			return "", nil
		}
		return value, nil
	case name == "aimd" && value == "on":
		return "1", nil
	case value == "off":
		return "0", nil
	case slices.Contains(shares, name):
		return parseShare(value)
	case slices.Contains(durations, name):
		d, err := time.ParseDuration(value)
		if err != nil || d < time.Millisecond {
			return "", fmt.Errorf("%q: expected a duration such as 10s or 5m", value)
		}
		return strconv.FormatInt(d.Milliseconds(), 10), nil
	}
	n, err := strconv.ParseInt(strings.NewReplacer(",", "", "_", "").Replace(value), 10, 64)
	if err != nil || n < 0 || n > 1e9 {
		return "", fmt.Errorf("%q: expected a whole number from 0 (off) to 1,000,000,000", value)
	}
	return strconv.FormatInt(n, 10), nil
}

// parseShare converts 70% or 0.7 into per mille. It refuses 70 without the sign, which could mean either.
func parseShare(value string) (string, error) {
	number, percent := strings.CutSuffix(value, "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		x /= 100
	}
	if err != nil || !(x >= 0 && x <= 1) {
		return "", fmt.Errorf("%q: expected a share such as 70%%, or off", value)
	}
	return strconv.FormatInt(int64(x*1000+0.5), 10), nil
}
