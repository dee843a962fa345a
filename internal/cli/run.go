package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"reprise/internal/settings"
)

// Exit codes. Each Program lists those it uses.
const (
	OK      = 0
	Failed  = 1 // it could not start, reach what it needs, or was refused
	Usage   = 2 // wrong flags or settings
	Unclean = 2 // the worker or the simulator stopped with work left undone
	Partial = 3 // some inputs failed
	None    = 4 // all inputs failed
)

// ExitCode is a line about an exit code in a help text.
type ExitCode struct {
	Code    int
	Meaning string
}

// Error is an error with the exit code of the process. Err is nil if the command has printed the failure already.
type Error struct {
	Code int
	Err  error
}

// Error returns the text of Err.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Errorf is fmt.Errorf with an exit code.
func Errorf(code int, format string, args ...any) error {
	return &Error{code, fmt.Errorf(format, args...)}
}

// WithCode gives err an exit code, unless err is nil or has a code.
func WithCode(code int, err error) error {
	if _, ok := errors.AsType[*Error](err); ok || err == nil {
		return err
	}
	return &Error{code, err}
}

// Process is what a command receives from the operating system.
type Process struct {
	Name     string   // of the program; set by Run
	Args     []string // without the program's name
	Environ  []string // as os.Environ returns it
	In       io.Reader
	Out, Err io.Writer
}

// Getenv returns the value of a variable, "" if it is not set.
func (p *Process) Getenv(name string) string { return settings.Getenv(p.Environ, name) }

// Program is a command of the module.
type Program struct {
	// New builds the root command.
	New func(*Process) *cobra.Command
	// ExitCodes are the last lines of every help text.
	ExitCodes []ExitCode
	// Failed is the exit code of errors that carry none.
	Failed int
	// Interrupted is the exit code after a second signal.
	Interrupted int
}

// Main runs the program as this process and exits with its code. The first SIGINT or SIGTERM cancels the command's
// context; the second exits at once.
func (g Program) Main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(g.Interrupted)
	}()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a write to a closed pipe fails and does not end the process
	os.Exit(g.Run(ctx, Process{Args: os.Args[1:], Environ: os.Environ(), In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// Run executes the command line, prints its error in one line on p.Err and returns the exit code. A failed write to
// p.Out is an error, too.
func (g Program) Run(ctx context.Context, p Process) int {
	out := &output{w: p.Out}
	p.Out = out
	root := g.New(&p)
	parsed := false // the command line is valid
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) { parsed = true }
	p.Name = root.Name()
	g.prepare(root, &p)
	cmd, err := root.ExecuteContextC(ctx)
	if werr := out.failure(); werr != nil {
		if !errors.Is(err, werr) {
			err = errors.Join(err, fmt.Errorf("write the output: %w", werr))
		}
		err = &Error{Failed, err}
	}
	code := g.Failed
	coded, ok := errors.AsType[*Error](err)
	switch {
	case err == nil:
		return OK
	case ok:
		code = coded.Code
	case !parsed:
		code = Usage
	}
	if !ok || coded.Err != nil {
		fmt.Fprintf(p.Err, "%s: %s\n", p.Name, Sentence(err))
	}
	if !parsed && code == Usage {
		fmt.Fprintf(p.Err, "Run '%s --help' for usage.\n", cmd.CommandPath())
	}
	return code
}

// Sentence returns the text of err in one line.
func Sentence(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// output is standard output that remembers its first failed write.
type output struct {
	w   io.Writer
	mu  sync.Mutex
	err error
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.w.Write(b)
	if o.err == nil {
		o.err = err
	}
	return n, err //nolint:wrapcheck // the caller says what it wrote
}

func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Terminal reports whether stream, one of a Process, is a terminal.
func Terminal(stream any) bool {
	if o, ok := stream.(*output); ok {
		stream = o.w
	}
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
