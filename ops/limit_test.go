package ops

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/admission"
)

func TestParseLimit_ReadsAssignments(t *testing.T) {
	t.Parallel()
	sources := []string{"main", "spare"}
	for arg, expected := range map[string]admission.Limit{
		"main/recognize.concurrency=20":    {Scope: "main:recognize", Name: "concurrency", Value: "20"},
		"main:recognize/concurrency=20":    {Scope: "main:recognize", Name: "concurrency", Value: "20"},
		"spare/upload/units_per_day=5_000": {Scope: "spare:upload", Name: "units_per_day", Value: "5000"},
		"global.requests_per_minute=off":   {Scope: "global", Name: "requests_per_minute", Value: "0"},
		"group/ugc.ceiling=70%":            {Scope: "group/ugc", Name: "ceiling", Value: "700"},
		"group/ugc.ceiling=0.125":          {Scope: "group/ugc", Name: "ceiling", Value: "125"},
		"group/ugc.slot_share=off":         {Scope: "group/ugc", Name: "slot_share", Value: "0"},
		"group/ugc.source=none":            {Scope: "group/ugc", Name: "source", Value: ""},
		"tuning.aimd=off":                  {Scope: "tuning", Name: "aimd", Value: "0"},
		"tuning.aimd=on":                   {Scope: "tuning", Name: "aimd", Value: "1"},
		"tuning.breaker_cooldown_max=2m":   {Scope: "tuning", Name: "breaker_cooldown_max", Value: "120000"},
	} {
		got, err := parseLimit(arg, sources)
		require.NoError(t, err, arg)
		require.Equal(t, expected, got, arg)
	}
}

func TestParseLimit_SuggestsTheNearestName(t *testing.T) {
	t.Parallel()
	for arg, expected := range map[string]string{
		"main/recognize.concurency=5":  "did you mean concurrency?",
		"mian/recognize.concurrency=5": "did you mean main?",
		"main/recognise.concurrency=5": "did you mean recognize?",
		"globl.units_per_day=5":        "did you mean global?",
		"tuning.breaker_cooldwn=5s":    "did you mean breaker_cooldown?",
		"tuning.breaker_cooldown=5":    "expected a duration",
		"group/UGC.ceiling=1%":         "expected group/NAME",
		"group/ugc.ceiling=70":         "expected a share",
		"group/ugc.ceiling=101%":       "expected a share",
		"main/recognize.concurrency":   "expected SCOPE.LIMIT=VALUE",
		"group/ugc.share=5%":           "has no limit share",
		"concurrency=5":                "expected SCOPE.LIMIT=VALUE",
		"main/recognize.=5":            "expected SCOPE.LIMIT=VALUE",
		"main/recognize.unit_burst=-1": "expected a whole number",
	} {
		_, err := parseLimit(arg, []string{"main"})
		require.ErrorContains(t, err, expected, arg)
	}
}

func TestLimitText_CanBeParsedAgain(t *testing.T) {
	t.Parallel()
	for _, l := range []admission.Limit{
		{Scope: "main:recognize", Name: "concurrency", Value: "3000"}, {Scope: "global", Name: "units_per_day", Value: "0"},
		{Scope: "group/ugc", Name: "ceiling", Value: "125"}, {Scope: "tuning", Name: "breaker_cooldown", Value: "1500"}, {Scope: "tuning", Name: "aimd", Value: "1"},
	} {
		got, err := parseLimit(scopeText(l.Scope)+"."+l.Name+"="+valueText(l), []string{"main"})
		require.NoError(t, err, l)
		require.Equal(t, l, got)
	}
}
