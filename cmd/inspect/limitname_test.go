package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/admission"
)

func TestLimitsAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	sources := []string{"main", "spare"}
	for arg, want := range map[string]admission.Limit{
		"main/recognize.concurrency=20":    {Scope: "main:recognize", Name: "concurrency", Value: "20"},
		"main:recognize/concurrency=20":    {Scope: "main:recognize", Name: "concurrency", Value: "20"},
		"spare/upload/units_per_day=5_000": {Scope: "spare:upload", Name: "units_per_day", Value: "5000"},
		"global.requests_per_minute=off":   {Scope: "g", Name: "requests_per_minute", Value: "0"},
		"g/units_per_month=1,000,000":      {Scope: "g", Name: "units_per_month", Value: "1000000"},
		"group/ugc.ceiling=70%":            {Scope: "group/ugc", Name: "share", Value: "700"},
		"group/ugc.ceiling=0.125":          {Scope: "group/ugc", Name: "share", Value: "125"},
		"group/ugc.slot_share=off":         {Scope: "group/ugc", Name: "slot_share", Value: "0"},
		"group/ugc.source=none":            {Scope: "group/ugc", Name: "source", Value: ""},
		"tune.aimd=off":                    {Scope: "tune", Name: "aimd", Value: "0"},
		"tune.aimd=on":                     {Scope: "tune", Name: "aimd", Value: "1"},
		"tune.brk_cool_max=2m":             {Scope: "tune", Name: "brk_cool_max", Value: "120000"},
	} {
		got, err := parseLimit(arg, sources)
		require.NoError(t, err, arg)
		require.Equal(t, want, got, arg)
	}
}

func TestUnknownLimitsNameTheNearest(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{
		"main/recognize.concurency=5":  "did you mean concurrency?",
		"mian/recognize.concurrency=5": "did you mean main?",
		"main/recognise.concurrency=5": "did you mean recognize?",
		"globl.units_per_day=5":        "did you mean global?",
		"tune.brk_coal=5s":             "did you mean brk_cool?",
		"tune.brk_cool=5":              "want a duration",
		"group/UGC.ceiling=1%":         "want group/NAME",
		"group/ugc.ceiling=70":         "want a share",
		"group/ugc.ceiling=101%":       "want a share",
		"main/recognize.concurrency":   "want SCOPE.LIMIT=VALUE",
		"group/ugc.share=5%":           "has no limit share",
		"concurrency=5":                "want SCOPE.LIMIT=VALUE",
		"main/recognize.=5":            "want SCOPE.LIMIT=VALUE",
		"main/recognize.unit_burst=-1": "want a whole number",
	} {
		_, err := parseLimit(arg, []string{"main"})
		require.ErrorContains(t, err, want, arg)
	}
}

func TestShownValuesCanBeReadBack(t *testing.T) {
	t.Parallel()
	for _, l := range []admission.Limit{
		{Scope: "main:recognize", Name: "concurrency", Value: "3000"}, {Scope: "g", Name: "units_per_day", Value: "0"},
		{Scope: "group/ugc", Name: "share", Value: "125"}, {Scope: "tune", Name: "brk_cool", Value: "1500"}, {Scope: "tune", Name: "aimd", Value: "1"},
	} {
		got, err := parseLimit(scopeShown(l.Scope)+"."+named(l.Name)+"="+shown(l), []string{"main"})
		require.NoError(t, err, l)
		require.Equal(t, l, got)
	}
}

func TestPathsStandForTheirQueues(t *testing.T) {
	t.Parallel()
	all := []string{"recognize", "recognize.archive", "enterprise", "upload"}
	got, err := expandTargets([]string{"recognize", "recognize.archive", "upload"}, false, all)
	require.NoError(t, err)
	require.Equal(t, []string{"recognize", "recognize.archive", "upload"}, got)
	got, err = expandTargets([]string{"recognize"}, true, all)
	require.NoError(t, err)
	require.Equal(t, []string{"recognize"}, got)
	_, err = expandTargets([]string{"enterprize"}, false, all)
	require.ErrorContains(t, err, "did you mean enterprise?")
}
