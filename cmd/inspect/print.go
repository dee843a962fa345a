package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// printer writes for people, or JSON.
type printer struct {
	out    io.Writer
	colour bool
}

func newPrinter(a *app) *printer {
	return &printer{out: a.std.out, colour: terminal(a.std.out) && a.getenv("NO_COLOR") == ""}
}

// terminal reports whether w is one.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (p *printer) line(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

func (p *printer) writeJSON(v any) error {
	enc := json.NewEncoder(p.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// colour is a terminal colour; the zero value is none.
type colour string

const (
	plain  colour = ""
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	bold   colour = "1"
)

func (p *printer) paint(s string, c colour) string {
	if !p.colour || c == plain {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

// cell is one field of a table.
type cell struct {
	text   string
	colour colour
	number bool // right-aligned
}

func text(s string) cell              { return cell{text: s} }
func tinted(s string, c colour) cell  { return cell{text: s, colour: c} }
func number[N int | int64](n N) cell  { return cell{text: thousands(int64(n)), number: true} }
func right(s string) cell             { return cell{text: s, number: true} }
func numberOr(n int64, z string) cell { return cell{text: thousandsOr(n, z), number: true} }

// table is rows under a heading, printed with columns as wide as they need.
type table struct {
	head []string
	rows [][]cell
}

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

func (p *printer) table(t table) {
	width := make([]int, len(t.head))
	for i, h := range t.head {
		width[i] = utf8.RuneCountInString(h)
	}
	for _, row := range t.rows {
		for i, c := range row {
			width[i] = max(width[i], utf8.RuneCountInString(c.text))
		}
	}
	heading := make([]cell, len(t.head))
	for i, h := range t.head {
		heading[i] = cell{text: h, colour: bold, number: len(t.rows) > 0 && t.rows[0][i].number}
	}
	for _, row := range append([][]cell{heading}, t.rows...) {
		var b strings.Builder
		for i, c := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c.text))
			switch {
			case c.number:
				b.WriteString(pad + p.paint(c.text, c.colour))
			case i == len(row)-1:
				b.WriteString(p.paint(c.text, c.colour))
			default:
				b.WriteString(p.paint(c.text, c.colour) + pad)
			}
			if i < len(row)-1 {
				b.WriteString("  ")
			}
		}
		fmt.Fprintln(p.out, strings.TrimRight(b.String(), " "))
	}
}
