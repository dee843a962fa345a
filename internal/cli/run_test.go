package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// program has a command for each way to end.
var program = Program{
	Failed:    Failed,
	ExitCodes: []ExitCode{{OK, "done"}, {Failed, "failed"}},
	New: func(p *Process) *cobra.Command {
		root := &cobra.Command{Use: "tool", Short: "Do things"}
		AddConnectionFlags(root.PersistentFlags())
		add := func(name string, run func(context.Context) error) {
			cmd := &cobra.Command{
				Use: name, Short: "End in a way", Example: "  tool " + name, Args: cobra.NoArgs,
				RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context()) },
			}
			cmd.Flags().Bool("fast", false, "end soon")
			root.AddCommand(cmd)
		}
		add("good", func(context.Context) error { p.Printer().Line("hello"); return nil })
		add("bad", func(context.Context) error { return errors.Join(errors.New("one"), errors.New("two")) })
		add("partial", func(context.Context) error { return &Error{Code: Partial} })
		add("refused", func(context.Context) error { return Errorf(None, "refused: %w", io.EOF) })
		add("json", func(context.Context) error { return p.Printer().JSON(map[string]int{"a": 1}) })
		add("table", func(context.Context) error { p.Printer().Table(Table{Head: []string{"A"}}); return nil })
		group := &cobra.Command{Use: "group", Short: "Group commands"}
		group.AddCommand(&cobra.Command{Use: "leaf", Short: "Be a leaf", RunE: func(*cobra.Command, []string) error { return nil }})
		root.AddCommand(group)
		return root
	},
}

func runTool(t *testing.T, out io.Writer, args ...string) (code int, stderr string) {
	t.Helper()
	var errs bytes.Buffer
	code = program.Run(t.Context(), Process{Args: args, In: strings.NewReader(""), Out: out, Err: &errs})
	return code, errs.String()
}

func TestExitCodeAndMessageFollowTheError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"good", OK, ""},
		{"bad", Failed, "tool: one; two\n"},
		{"partial", Partial, ""},
		{"refused", None, "tool: refused: EOF\n"},
		{"good --slow", Usage, "tool: unknown flag: --slow\nRun 'tool good --help' for usage.\n"},
		{"good extra", Usage, "tool: unknown command \"extra\" for \"tool good\"\nRun 'tool good --help' for usage.\n"},
		{"nosuch", Usage, "tool: unknown command \"nosuch\" for \"tool\"\nRun 'tool --help' for usage.\n"},
		{"--version", OK, ""},
		{"group leaf", OK, ""},
	} {
		code, stderr := runTool(t, io.Discard, strings.Fields(c.args)...)
		require.Equal(t, c.code, code, c.args)
		require.Equal(t, c.stderr, stderr, c.args)
	}
}

func TestCommandWithoutSubcommandPrintsHelpAndFails(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"group"}} {
		var out bytes.Buffer
		code, _ := runTool(t, &out, args...)
		require.Equal(t, Usage, code)
		require.Contains(t, out.String(), "Usage:\n  tool")
	}
}

func TestHelpShowsExamplesFirstAndExitCodesLast(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	code, stderr := runTool(t, &out, "good", "--help")
	require.Equal(t, OK, code, stderr)
	require.Regexp(t, `(?s)^End in a way\n\nExamples:\n  tool good\n\nUsage:\n  tool good \[flags\]\n\nFlags:\n`+
		`      --fast   end soon\n  -h, --help   help for good\n\nFlags of every command:\n.*`+
		`      --data string            data folder of worker dev \(REPRISE_DATA\) \(default ".reprise"\)\n.*`+
		`\n\nExit codes:\n  0   done\n  1   failed\n$`, out.String())
}

func TestFailedWriteToStandardOutputIsAnError(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"good", "json", "table", "--help", "--version"} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		require.NoError(t, err)
		code, stderr := runTool(t, full, args)
		require.NoError(t, full.Close())
		require.Equal(t, Failed, code, args)
		require.ErrorContains(t, errors.New(stderr), syscall.ENOSPC.Error(), args)
		require.Equal(t, 1, strings.Count(stderr, "no space"), stderr)
	}
}

func TestConnection_ReadsFlagsFileAndEnvironment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "reprise.yaml")
	require.NoError(t, os.WriteFile(file, []byte("price_per_1000: 5\nslots: {recognize: 3}\ndata: "+dir+"\n"), 0o600))
	load := func(environ []string, args ...string) (cfg Connection, warnings string, err error) {
		var errs bytes.Buffer
		p := &Process{Name: "tool", Environ: environ, Err: &errs}
		flags := program.New(p).PersistentFlags()
		require.NoError(t, flags.Parse(args))
		err = p.LoadConnection(&cfg, flags)
		return cfg, errs.String(), err
	}
	cfg, warnings, err := load([]string{"REPRISE_STORE_URL=sqlite:/s.db"}, "--config", file, "--redis", "redis://h")
	require.NoError(t, err)
	require.Empty(t, warnings)
	redisURL, storeURL, err := cfg.Addresses()
	require.NoError(t, err)
	require.Equal(t, []string{"redis://h", "sqlite:/s.db"}, []string{redisURL, storeURL})
	require.Equal(t, "$5.00 at $5.00/1000", cfg.Money(1000))
	require.Equal(t, "price unknown (--price-per-1000)", Connection{}.Money(1000))

	cfg.Redis.URL, cfg.Store.URL = "", ""
	redisURL, storeURL, err = cfg.Addresses()
	require.ErrorContains(t, err, "no Redis URL")
	require.Equal(t, []string{"", "sqlite:" + dir + "/reprise.db"}, []string{redisURL, storeURL})

	_, _, err = load([]string{"REPRISE_REDIS_ULR=x"})
	require.Equal(t, Usage, errorCode(t, err))
	require.Equal(t, Usage, errorCode(t, cfg.Ping(t.Context(), "nonsense", Failed)))
	require.Equal(t, None, errorCode(t, cfg.Ping(t.Context(), "redis://127.0.0.1:1", None)))
}

func errorCode(t *testing.T, err error) int {
	t.Helper()
	var e *Error
	require.ErrorAs(t, err, &e)
	return e.Code
}

func TestConfirmAcceptsYesOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer string
		want   bool
	}{{"y\n", true}, {" YES \n", true}, {"n\n", false}, {"", false}, {"yeah\n", false}} {
		var errs bytes.Buffer
		p := &Process{In: strings.NewReader(c.answer), Err: &errs}
		got, err := p.Confirm(t.Context(), "Send it?")
		require.NoError(t, err)
		require.Equal(t, c.want, got, c.answer)
		require.Equal(t, "Send it? [y/N] ", errs.String())
		require.False(t, p.Interactive())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never, end := io.Pipe()
	t.Cleanup(func() { _ = end.Close() })
	_, err := (&Process{In: never, Err: io.Discard}).Confirm(ctx, "Send it?")
	require.ErrorIs(t, err, context.Canceled)
}

func TestReleaseVersionIsSetAtBuildTime(t *testing.T) {
	require.NotEmpty(t, Version())
	version = "v1.2.3"
	t.Cleanup(func() { version = "" })
	require.Equal(t, "v1.2.3", Version())
	var out bytes.Buffer
	code, _ := runTool(t, &out, "--version")
	require.Equal(t, OK, code)
	require.Equal(t, "tool version v1.2.3\n", out.String())
}
