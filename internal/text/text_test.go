package text

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpanUsesOneOrTwoUnits(t *testing.T) {
	t.Parallel()
	for d, expected := range map[time.Duration]string{
		-time.Second: "0 ms", 400 * time.Millisecond: "400 ms", 59 * time.Second: "59 s", 59*time.Second + 900*time.Millisecond: "1 min",
		90 * time.Second: "2 min", 59*time.Minute + 59*time.Second: "1 h", 200 * time.Minute: "3 h 20 min", 24 * time.Hour: "1 d", 52 * time.Hour: "2 d 4 h",
	} {
		require.Equal(t, expected, Span(d), d)
	}
}

func TestNumbersAreGroupedByThousands(t *testing.T) {
	t.Parallel()
	for n, expected := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234: "-1,234", -123: "-123", 1234567: "1,234,567"} {
		require.Equal(t, expected, Thousands(n))
	}
	require.Equal(t, "1 task", Count(1, "task", "tasks"))
	require.Equal(t, "2,000 tasks", Count(2000, "task", "tasks"))
	require.Equal(t, "$1,234.50", Dollars(1234.5))
	require.Equal(t, "$0.0150", Dollars(0.015))
	require.Equal(t, "$0.00", Dollars(0))
	require.Equal(t, "61 %", Share(1220, 2000))
	require.Equal(t, "–", Share(1, 0))
}

func TestTimesAreRelativeToNow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 23, 30, 0, 0, time.UTC)
	f := Times{Zone: time.FixedZone("CET", 3600), Now: now}
	require.Equal(t, "00:20:00 (10 min ago)", f.Since(now.Add(-10*time.Minute)))
	require.Equal(t, "00:33:00 (in 3 min)", f.Until(now.Add(3*time.Minute)))
	require.Equal(t, "any moment", f.Until(now))
	require.Equal(t, "2026-12-02 00:30", f.At(now.Add(24*time.Hour)))
	require.Equal(t, "never", f.At(time.Time{}))
	require.Equal(t, "never", f.Since(time.Time{}))
}

func TestNamesCannotControlTheTerminal(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a\ufffd[31mb – ü", Printable("a\x1b[31mb – ü"))
	require.Equal(t, "abc…", Short("abcdef", 4))
	require.Equal(t, "abcd", Short("abcd", 4))
}

func TestNearestFindsTypos(t *testing.T) {
	t.Parallel()
	known := []string{"recognize", "enterprise", "upload", "off"}
	for word, expected := range map[string]string{
		"recognise": "recognize", "recongize": "recognize", "uplod": "upload", "enter": "enterprise", "of": "off", "costs": "", "": "",
	} {
		require.Equal(t, expected, Nearest(word, known), word)
	}
	require.Equal(t, " – did you mean upload?", DidYouMean("UPLOAF", known))
	require.Empty(t, DidYouMean("nothing", known))
}

func TestSongDescribesAResultInAFewWords(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]string{
		`{"artist":"Paper Boats","title":"Adrift"}`: "Paper Boats – Adrift",
		`null`: "", `[]`: "", `[{"songs":[]}]`: "", `"text"`: "", ``: "",
		`[{"songs":[{"artist":"A","title":"B"},{"artist":"A","title":"B"}]}]`:                                             "A – B",
		`[{"songs":[{"artist":"A","title":"B"},{"artist":"A","title":"B"}]},{"songs":[{"artist":"C","title":"D"}]}]`:      "A – B and 1 more song",
		`[{"songs":[{"artist":"A","title":"B"},{"artist":"E","title":"F"}]},{"songs":[{"artist":"C","title":"D"}]},null]`: "A – B and 2 more songs",
	} {
		require.Equal(t, want, Song([]byte(result)), result)
	}
}
