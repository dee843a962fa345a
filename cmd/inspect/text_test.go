package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/store"
	"reprise/tasks"
)

func TestSpanSaysWhatPeopleRead(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 ms", 400 * time.Millisecond: "400 ms", 59 * time.Second: "59 s", 59*time.Second + 900*time.Millisecond: "1 min",
		90 * time.Second: "2 min", 59*time.Minute + 59*time.Second: "1 h", 200 * time.Minute: "3 h 20 min", 24 * time.Hour: "1 d", 52 * time.Hour: "2 d 4 h",
	} {
		require.Equal(t, want, span(d), d)
	}
}

func TestNumbersHaveThousandsAndMoneyIsNeverZeroWhenUnknown(t *testing.T) {
	t.Parallel()
	require.Equal(t, "1,234,567", thousands(1234567))
	require.Equal(t, "-123", thousands(-123))
	require.Equal(t, "1 task", count(1, "task", "tasks"))
	require.Equal(t, "$1,234.50", dollars(1234.5))
	require.Equal(t, "$0.0150", dollars(0.015))
	require.Equal(t, "unknown", money(costRow{UnpricedUnits: 3}))
	require.Equal(t, "$0.00", money(costRow{}))
	require.Equal(t, "61 %", share(1220, 2000))
	require.Equal(t, "–", share(1, 0))
}

func TestCostsKeepUnknownPricesApart(t *testing.T) {
	t.Parallel()
	price := 0.005
	var r, sum costRow
	r.add(store.Call{Units: 1, Cost: &price})
	r.add(store.Call{Units: 2, Cost: &price, UnitBasis: "estimated"})
	r.add(store.Call{Units: 3, PossiblyBilled: true})
	r.add(store.Call{UnitBasis: "unavailable"}) // free and unknown units: no price is missing
	sum.merge(r)
	sum.merge(costRow{Calls: 1, Units: 1, UnpricedCalls: 1, UnpricedUnits: 1})
	require.Equal(t, int64(5), sum.Calls)
	require.Equal(t, int64(7), sum.Units)
	require.InDelta(t, 0.01, *sum.Cost, 1e-9)
	require.Equal(t, int64(4), sum.UnpricedUnits)
	require.Equal(t, int64(1), sum.PossiblyBilled)
	require.Equal(t, int64(1), sum.UnknownUnits)
	require.Equal(t, int64(2), sum.EstimatedUnits)
	require.InDelta(t, 0.005, price, 0, "the rows' own prices stay as they were")
}

func TestTableColumnsAreAsWideAsTheyNeedWithColoursToo(t *testing.T) {
	t.Parallel()
	rows := table{head: []string{"NAME", "N", "STATE"}}
	rows.add(text("ä"), number(1200), tinted("ok", green))
	rows.add(text("longer"), number(7), text(""))
	var plain, coloured bytes.Buffer
	(&printer{out: &plain}).table(rows)
	require.Equal(t, "NAME        N  STATE\nä       1,200  ok\nlonger      7\n", plain.String())
	(&printer{out: &coloured, colour: true}).table(rows)
	require.Contains(t, coloured.String(), "ä       1,200  \x1b[32mok\x1b[0m\n")
	require.Contains(t, coloured.String(), "\x1b[1mNAME\x1b[0m        \x1b[1mN\x1b[0m")
	var none bytes.Buffer
	(&printer{out: &none}).table(table{head: []string{"A", "B"}})
	require.Equal(t, "A  B\n", none.String())
}

func TestNamesCannotControlTheTerminal(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a\ufffd[31mb – ü", printable("a\x1b[31mb – ü"))
	require.Equal(t, "https://example.com/a.mp3", shownName("https://example.com/a.mp3?sig=sesame"))
	require.Equal(t, "abc…", short("abcdef", 4))
}

func TestMomentsAreAgesOrDatesInTheZone(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("there", 3600)
	at, err := moment("2026-11-30", zone)
	require.NoError(t, err)
	require.Equal(t, "2026-11-29T23:00:00Z", at.UTC().Format(time.RFC3339))
	at, err = moment("7d", zone)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().AddDate(0, 0, -7), at, time.Minute)
	at, err = moment("", zone)
	require.NoError(t, err)
	require.True(t, at.IsZero())
	for _, bad := range []string{"yesterday", "-5m", "7", "2026-13-01"} {
		_, err = moment(bad, zone)
		require.ErrorContains(t, err, "want 90m, 24h, 7d", bad)
	}
}

func TestResultsAreDescribedInAFewWords(t *testing.T) {
	t.Parallel()
	done := func(result string) store.TaskStatus {
		return store.TaskStatus{Finished: true, Verdict: tasks.Done, Outcome: tasks.Match, Result: []byte(result)}
	}
	require.Equal(t, "Paper Boats – Adrift", describe(done(`{"artist":"Paper Boats","title":"Adrift"}`)))
	require.Empty(t, describe(done(`null`)))
	require.Equal(t, "A – B and 1 more songs", describe(done(`[{"songs":[{"artist":"A","title":"B"},{"artist":"A","title":"B"}]},{"songs":[{"artist":"C","title":"D"}]}]`)))
	require.Equal(t, "quota: used up", describe(store.TaskStatus{Reason: "quota: used up"}))
	require.Equal(t, "waiting", standingWord(store.TaskStatus{}))
}

func TestRatesAreReadPerSecondOrMinute(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"20/s": 50 * time.Millisecond, "300/min": 200 * time.Millisecond, "2": 500 * time.Millisecond, "0.5/s": 2 * time.Second} {
		got, err := parseRate(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, bad := range []string{"", "0/s", "-1", "20/h", "fast", "NaN"} {
		_, err := parseRate(bad)
		require.Error(t, err, bad)
	}
}
