package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"reprise/internal/text"
)

// Printer writes text with or without colours, tables and JSON. It is not safe for concurrent use.
type Printer struct {
	Out    io.Writer
	Colour bool
}

// Printer returns a printer for standard output. It uses colours on a terminal, unless NO_COLOR is set.
func (p *Process) Printer() *Printer {
	return &Printer{Out: p.Out, Colour: Terminal(p.Out) && p.Getenv("NO_COLOR") == ""}
}

// Line writes one line. Program.Run reports a write that fails.
func (p *Printer) Line(format string, args ...any) { fmt.Fprintf(p.Out, format+"\n", args...) }

// JSON writes v as indented JSON.
func (p *Printer) JSON(v any) error {
	enc := json.NewEncoder(p.Out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// Colour is a terminal colour. The zero value is none.
type Colour string

// The colours of output.
const (
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
	Bold   Colour = "1"
)

// Paint colours s where the printer uses colours.
func (p *Printer) Paint(s string, c Colour) string {
	if !p.Colour || c == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

// Cell is one field of a table.
type Cell struct {
	Text   string
	Colour Colour
	Right  bool // right-aligned
}

// Number is a right-aligned cell, such as a count or an age.
func Number(s string) Cell { return Cell{Text: s, Right: true} }

// Table is rows under a heading.
type Table struct {
	Head []string
	rows [][]Cell
}

// Add appends a row, which must have as many cells as Head. A cell is a string, a count (an int64, which is right-aligned),
// or a Cell.
func (t *Table) Add(cells ...any) {
	row := make([]Cell, len(cells))
	for i, c := range cells {
		switch c := c.(type) {
		case Cell:
			row[i] = c
		case int64:
			row[i] = Number(text.Thousands(c))
		default:
			row[i].Text = fmt.Sprint(c)
		}
		row[i].Text = text.Printable(row[i].Text)
	}
	t.rows = append(t.rows, row)
}

// Empty reports whether the table has no rows.
func (t *Table) Empty() bool { return len(t.rows) == 0 }

// Table writes t with columns as wide as their widest cell.
func (p *Printer) Table(t Table) {
	heading := make([]Cell, len(t.Head))
	for i, h := range t.Head {
		heading[i] = Cell{Text: h, Colour: Bold, Right: len(t.rows) > 0 && t.rows[0][i].Right}
	}
	rows := append([][]Cell{heading}, t.rows...)
	width := make([]int, len(t.Head))
	for _, row := range rows {
		for i, c := range row {
			width[i] = max(width[i], utf8.RuneCountInString(c.Text))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, c := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c.Text))
			if c.Right {
				line.WriteString(pad + p.Paint(c.Text, c.Colour) + "  ")
			} else {
				line.WriteString(p.Paint(c.Text, c.Colour) + pad + "  ")
			}
		}
		p.Line("%s", strings.TrimRight(line.String(), " "))
	}
}
