package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/admission"
	"reprise/tasks"
)

// limitNames are the limits of a source+path and of everything together.
var limitNames = []string{
	"concurrency", "requests_per_minute", "request_burst", "units_per_minute", "unit_burst", "units_per_day", "units_per_month",
}

// groupNames are the limits of a group.
var groupNames = []string{"ceiling", "weight", "slot_share", "units_per_day", "units_per_month", "source"}

// tuneNames are the tuning of AIMD and breaker.
var tuneNames = []string{
	"aimd", "aimd_start", "aimd_floor", "aimd_max", "breaker_failures", "breaker_window", "breaker_cooldown", "breaker_cooldown_max", "breaker_auth_failures", "breaker_not_found",
	"breaker_probe_quota", "breaker_probe_blocked",
}

// tuneTimes are those of tuneNames that are milliseconds in Redis.
var tuneTimes = []string{"breaker_window", "breaker_cooldown", "breaker_cooldown_max", "breaker_probe_quota", "breaker_probe_blocked"}

// parseLimit reads SCOPE.NAME=VALUE or SCOPE/NAME=VALUE, as people write it:
// main/recognize.concurrency=20, global.requests_per_minute=3000,
// group/archive.ceiling=70%, tuning.aimd=off.
func parseLimit(arg string, sources []string) (admission.Limit, error) {
	left, value, ok := strings.Cut(arg, "=")
	if !ok || value == "" {
		return admission.Limit{}, fmt.Errorf("%s: want SCOPE.LIMIT=VALUE, such as main/recognize.concurrency=20", printable(arg))
	}
	cut := strings.LastIndexAny(left, "./")
	if strings.Contains(left, ".") {
		cut = strings.LastIndex(left, ".")
	}
	if cut <= 0 || cut == len(left)-1 {
		return admission.Limit{}, fmt.Errorf("%s: want SCOPE.LIMIT=VALUE, such as main/recognize.concurrency=20", printable(arg))
	}
	scope, known, err := parseScope(left[:cut], sources)
	if err != nil {
		return admission.Limit{}, err
	}
	name := left[cut+1:]
	if !slices.Contains(known, name) {
		return admission.Limit{}, fmt.Errorf("%s has no limit %s%s", left[:cut], printable(name), didYouMean(name, known))
	}
	if value, err = parseValue(name, value); err != nil {
		return admission.Limit{}, fmt.Errorf("%s: %w", left, err)
	}
	return admission.Limit{Scope: scope, Name: name, Value: value}, nil
}

// parseScope reads a scope and says which limits it has.
func parseScope(text string, sources []string) (scope string, known []string, err error) {
	switch text {
	case admission.ScopeGlobal:
		return admission.ScopeGlobal, limitNames, nil
	case admission.ScopeTuning:
		return admission.ScopeTuning, tuneNames, nil
	}
	if group, ok := strings.CutPrefix(text, "group/"); ok {
		if err := tasks.ValidateGroup(group); err != nil || group == "" {
			return "", nil, fmt.Errorf("%s: want group/NAME, lower-case letters, digits, - and _", printable(text))
		}
		return admission.ScopeOfGroup(group), groupNames, nil
	}
	source, path, found := strings.Cut(text, "/")
	if !found {
		source, path, found = strings.Cut(text, ":")
	}
	if !found {
		scopes := append(scopesOf(sources), "global", "tuning")
		return "", nil, fmt.Errorf("no scope %s%s (SOURCE/PATH, global, group/NAME or tuning)", printable(text), didYouMean(text, scopes))
	}
	p, err := checkGate(source, path, sources)
	return admission.ScopeOf(source, p), limitNames, err
}

func scopesOf(sources []string) []string {
	var out []string
	for _, s := range sources {
		for _, p := range tasks.Paths {
			out = append(out, s+"/"+string(p))
		}
	}
	return out
}

// checkGate checks a source and a path that a person named.
func checkGate(source, path string, sources []string) (tasks.Path, error) {
	if !slices.Contains(sources, source) {
		return "", fmt.Errorf("no source %s%s (there is %s)", printable(source), didYouMean(source, sources), strings.Join(sources, ", "))
	}
	p, err := tasks.ParsePath(path)
	if err != nil {
		var names []string
		for _, p := range tasks.Paths {
			names = append(names, string(p))
		}
		return "", fmt.Errorf("%w%s", err, didYouMean(path, names))
	}
	return p, nil
}

// parseValue turns what people write into what Redis holds.
func parseValue(name, value string) (string, error) {
	value = strings.TrimSpace(value)
	switch {
	case name == "source":
		if value == "none" || value == "any" {
			return "", nil
		}
		return value, nil
	case name == "ceiling" || name == "slot_share":
		return parseShare(value)
	case name == "aimd" && value == "on":
		return "1", nil
	case value == "off":
		return "0", nil
	case slices.Contains(tuneTimes, name):
		d, err := time.ParseDuration(value)
		if err != nil || d < time.Millisecond {
			return "", fmt.Errorf("%q: want a duration such as 10s or 5m", value)
		}
		return strconv.FormatInt(d.Milliseconds(), 10), nil
	}
	plain := strings.NewReplacer(",", "", "_", "").Replace(value)
	n, err := strconv.ParseInt(plain, 10, 64)
	if err != nil || n < 0 || n > 1e9 {
		return "", fmt.Errorf("%q: want a whole number from 0 (off) to 1,000,000,000", value)
	}
	return strconv.FormatInt(n, 10), nil
}

// parseShare reads 70% or 0.7 into per mille. A bare 70 could mean either, so
// it is refused.
func parseShare(value string) (string, error) {
	if value == "off" {
		return "0", nil
	}
	text, percent := strings.CutSuffix(value, "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if percent {
		x /= 100
	}
	if err != nil || !(x >= 0 && x <= 1) {
		return "", fmt.Errorf("%q: want a share such as 70%%, or off", value)
	}
	return strconv.FormatInt(int64(x*1000+0.5), 10), nil
}

// shown writes a value as people write it.
func shown(l admission.Limit) string {
	n, err := strconv.ParseInt(l.Value, 10, 64)
	switch {
	case l.Name == "source" || err != nil:
		return printable(l.Value)
	case l.Name == "ceiling" || l.Name == "slot_share":
		if n == 0 {
			return "off"
		}
		return strconv.FormatFloat(float64(n)/10, 'f', -1, 64) + "%"
	case l.Name == "aimd" && n == 1:
		return "on"
	case l.Name == "weight":
		return l.Value
	case n == 0:
		return "off"
	case slices.Contains(tuneTimes, l.Name):
		return (time.Duration(n) * time.Millisecond).String()
	}
	return thousands(n)
}

// scopeShown writes a scope as people write it.
func scopeShown(scope string) string {
	return strings.Replace(scope, ":", "/", 1)
}
