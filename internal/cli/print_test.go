package cli

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTableColumnsFitTheirWidestCell(t *testing.T) {
	t.Parallel()
	rows := Table{Head: []string{"NAME", "N", "STATE"}}
	rows.Add("ä", int64(1200), Cell{Text: "ok", Colour: Green})
	rows.Add("lo\x1bger", Number("7"), "")
	render := func(table Table, colour bool) string {
		var out bytes.Buffer
		(&Printer{Out: &out, Colour: colour}).Table(table)
		return out.String()
	}
	require.Equal(t, "NAME        N  STATE\nä       1,200  ok\nlo\ufffdger      7\n", render(rows, false))
	require.Contains(t, render(rows, true), "ä       1,200  \x1b[32mok\x1b[0m")
	require.Contains(t, render(rows, true), "\x1b[1mNAME\x1b[0m        \x1b[1mN\x1b[0m")
	require.Equal(t, "A  B\n", render(Table{Head: []string{"A", "B"}}, false))
}
