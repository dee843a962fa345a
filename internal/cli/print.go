package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Printer writes text with or without colours, tables and JSON. It is not safe
// for concurrent use.
type Printer struct {
	Out    io.Writer
	Colour bool
}

// Printer writes to standard output, with colours on a terminal unless NO_COLOR
// is set.
func (p *Process) Printer() *Printer {
	return &Printer{Out: p.Out, Colour: Terminal(p.Out) && p.Getenv("NO_COLOR") == ""}
}

// Line writes one line. Run reports a write that fails.
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

// Text is a left-aligned cell.
func Text(s string) Cell { return Cell{Text: s} }

// Number is a right-aligned cell, such as a count or an age.
func Number(s string) Cell { return Cell{Text: s, Right: true} }

// Table is rows under a heading.
type Table struct {
	Head []string
	Rows [][]Cell
}

// Add appends a row, which must have as many cells as Head.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, cells) }

// Table writes t with columns as wide as their widest cell.
func (p *Printer) Table(t Table) error {
	heading := make([]Cell, len(t.Head))
	for i, h := range t.Head {
		heading[i] = Cell{Text: h, Colour: Bold, Right: len(t.Rows) > 0 && t.Rows[0][i].Right}
	}
	rows := append([][]Cell{heading}, t.Rows...)
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
			text := p.Paint(c.Text, c.Colour)
			if c.Right {
				text = pad + text
			} else {
				text += pad
			}
			line.WriteString(text + "  ")
		}
		if _, err := fmt.Fprintln(p.Out, strings.TrimRight(line.String(), " ")); err != nil {
			return fmt.Errorf("write table: %w", err)
		}
	}
	return nil
}
