package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Interactive reports whether a user can be asked.
func (p *Process) Interactive() bool { return Terminal(p.In) && Terminal(p.Err) }

// Confirm asks a question and reports whether the user answers yes. It returns ctx's error if ctx ends first; the read
// then continues until the process ends.
func (p *Process) Confirm(ctx context.Context, question string) (bool, error) {
	fmt.Fprintf(p.Err, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(p.In).ReadString('\n') // no answer is a no
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(p.Err)
		return false, ctx.Err()
	case text := <-answer:
		return slices.Contains([]string{"y", "yes"}, text), nil
	}
}
