package retrypolicy

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"reprise/tasks"
)

var update = flag.Bool("update", false, "write the table of doc.go")

func TestTableHasOneRowPerOutcome(t *testing.T) {
	t.Parallel()
	seen := map[tasks.Outcome]int{}
	for _, r := range table {
		seen[r.outcome]++
	}
	for _, o := range tasks.Outcomes {
		assert.Equal(t, 1, seen[o], "rows of %s", o)
	}
	assert.Len(t, table, len(tasks.Outcomes), "a row without an outcome")
}

func TestTableRowsAreConsistent(t *testing.T) {
	t.Parallel()
	for _, r := range table {
		t.Run(string(r.outcome), func(t *testing.T) {
			t.Parallel()
			assert.NotEmpty(t, r.when)
			assert.Contains(t, tasks.Verdicts, r.verdict)
			assert.Contains(t, tasks.Verdicts, r.upload)
			assert.Contains(t, []tasks.Channel{tasks.ChannelSuccess, tasks.ChannelFailure, tasks.ChannelAccount, tasks.ChannelExcluded, tasks.ChannelNone}, r.channel)
			assert.NotEmpty(t, r.units)
			assert.NotEqual(t, tasks.Hold, r.verdict, "only uploads are held")
			if r.verdict == tasks.Retry {
				assert.True(t, r.counted, "a retry that is not counted never ends")
			}
			if r.billed {
				assert.Equal(t, tasks.Hold, r.upload, "an operator decides about an upload that may have arrived")
				assert.Equal(t, tasks.LatchUncertain, r.latch)
				assert.Equal(t, unitsKept, r.units)
			}
			if r.upload == tasks.Retry || r.upload == tasks.Snooze {
				assert.Contains(t, []tasks.LatchEffect{tasks.LatchReleased, tasks.LatchUntouched}, r.latch, "a task that runs again must be able to send")
			}
			if r.final {
				assert.Equal(t, tasks.Archive, r.verdict)
			}
			again := r.verdict == tasks.Retry || r.verdict == tasks.Snooze || r.wait == waitQuota
			assert.Equal(t, again, r.wait != waitNone, "only retry and snooze have a wait")
		})
	}
}

func TestRowOfAnUnknownOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	assert.Equal(t, tasks.Unknown, rowOf("").outcome)
	assert.Equal(t, tasks.Unknown, rowOf("no such word").outcome)
}

func TestOutcomeTableInDocMatchesTheCode(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(raw), "// # Outcomes\n//\n")
	require.True(t, found, "doc.go has the heading")
	shown, after, found := strings.Cut(rest, "//\n// recognition is")
	require.True(t, found, "doc.go has the paragraph after the table")
	want := documented()
	if *update {
		text := before + "// # Outcomes\n//\n" + want + "//\n// recognition is" + after
		require.NoError(t, os.WriteFile("doc.go", []byte(text), 0o644))
		return
	}
	assert.Equal(t, want, shown, "run go test ./retrypolicy -run TestDocShowsTheTable -update")
}

// documented renders the table for doc.go.
func documented() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "outcome\twhen\trecognition\tupload\twait\tcounted\tbilled\tunits\tbreaker\tlatch\talso")
	for _, r := range table {
		fmt.Fprintln(w, strings.Join([]string{
			string(r.outcome), r.when, string(r.verdict), string(r.upload), string(r.wait), yesOrDash(r.counted), yesOrDash(r.billed),
			string(r.units), string(r.channel), string(r.latch), also(r),
		}, "\t"))
	}
	w.Flush()
	var out strings.Builder
	for line := range strings.Lines(b.String()) {
		out.WriteString("//\t" + strings.TrimRight(line, " \n") + "\n")
	}
	return out.String()
}

func yesOrDash(yes bool) string {
	if yes {
		return "yes"
	}
	return "–"
}

func also(r row) string {
	var words []string
	add := func(yes bool, word string) {
		if yes {
			words = append(words, word)
		}
	}
	add(r.final, "final")
	add(r.blocks, "Retry-After blocks source+path")
	add(r.halt != tasks.HaltNone, "halts "+string(r.halt))
	add(r.haltAfter > 0, fmt.Sprintf("%d in a row halt", r.haltAfter))
	add(r.tryOther, "another source first")
	add(r.alert, "alert")
	return strings.Join(words, ", ")
}
