package intake

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/testaudio"
	"reprise/tasks"
)

func expanded(t *testing.T, stdin io.Reader, args ...string) []string {
	t.Helper()
	found, err := expand(t.Context(), args, stdin)
	require.NoError(t, err)
	var out []string
	for _, f := range found {
		text := f.name
		if f.refused != "" {
			text += " " + f.refused
		}
		out = append(out, text)
	}
	return out
}

func TestFoldersAreWalkedInOrderWithoutHiddenFilesAndLoops(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"b.wav", "a/2.wav", "a/1.wav", ".hidden.wav", ".git/x.wav", "a/deep/3.wav"} {
		put(t, dir, name, []byte("x"))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o755))
	require.NoError(t, os.Symlink("..", filepath.Join(dir, "a", "loop")))
	require.NoError(t, os.Symlink("self", filepath.Join(dir, "self")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "broken")))
	p := func(name string) string { return filepath.Join(dir, name) }
	require.Equal(t, []string{
		p("a/1.wav"), p("a/2.wav"), p("a/deep/3.wav"), p("b.wav"), p("broken") + " does not exist", p("self") + " is a symbolic link that points to itself",
	}, expanded(t, nil, dir))
	require.Equal(t, []string{p("empty") + " is a folder without files (hidden files are ignored)"}, expanded(t, nil, p("empty")))
	require.Equal(t, []string{p(".hidden.wav")}, expanded(t, nil, p(".hidden.wav")))
}

func TestArgumentsMayBePatternsAndURLs(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"ftp://h/y.mp3 is a URL that AudD cannot fetch: only http and https work"},
		expanded(t, nil, "ftp://u:sesame@h/y.mp3?s=sesame"))
	dir := t.TempDir()
	for _, name := range []string{"2.wav", "1.wav", ".3.wav", "x.txt", "odd[1].wav"} {
		put(t, dir, name, []byte("x"))
	}
	p := func(name string) string { return filepath.Join(dir, name) }
	require.Equal(t, []string{p("1.wav"), p("2.wav"), p("odd[1].wav")}, expanded(t, nil, p("*.wav")))
	require.Equal(t, []string{p("odd[1].wav")}, expanded(t, nil, p("odd[1].wav")))
	require.Equal(t, []string{p("*.mp3") + " matches no file", p("no.wav") + " does not exist", p("[") + " is neither an existing file nor a valid pattern"},
		expanded(t, nil, p("*.mp3"), p("no.wav"), p("[")))
	require.Equal(t, []string{"https://h/a.mp3"}, expanded(t, nil, "https://user:pw@h/a.mp3?X-Amz-Signature=sesame"))
	require.Equal(t, []string{"https://h/a.mp3"}, expanded(t, strings.NewReader("  https://h/a.mp3?sig=sesame"), "-"))
	require.Equal(t, []string{"s3://h/a is a URL that AudD cannot fetch: only http and https work"},
		expanded(t, nil, "s3://h/a?sig=sesame"+strings.Repeat("x", 300)), "a name too long for a file shows no signature")
	require.Equal(t, []string{`"" is an empty argument: name a file, a folder, a pattern or a URL`}, expanded(t, nil, ""))
}

func TestStandardInputHoldsAListOfInputs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := put(t, dir, "a b.wav", []byte("x")), put(t, dir, "#c.wav", []byte("x"))
	require.Equal(t, []string{a, b, "https://h/x"}, expanded(t, strings.NewReader("\xef\xbb\xbf"+a+"\r\n\n  \n"+b+"\nhttps://h/x?sig=1"), "-"))
	require.Equal(t, []string{a, b}, expanded(t, strings.NewReader(a+"\x00"+b+"\x00"), "-"))
	require.Equal(t, []string{"- the list on standard input is empty", "- the list on standard input can be read only once"}, expanded(t, strings.NewReader("\n"), "-", "-"))
	require.Equal(t, []string{"- the list on standard input has an entry longer than 1 MiB"}, expanded(t, strings.NewReader(strings.Repeat("x", maxListEntry+1)), "-"))
}

func TestUnusableFilesAreRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	large := put(t, dir, "large.wav", testaudio.WAV(100*time.Millisecond, "1"))
	require.NoError(t, os.Truncate(large, MaxRecognizeBytes+1))
	for name, c := range map[string]struct{ path, want string }{
		"missing":   {filepath.Join(dir, "no.wav"), "does not exist"},
		"empty":     {put(t, dir, "empty.wav", nil), "is empty"},
		"folder":    {dir, "is a folder, not a file"},
		"pipe":      {pipe, "is not a regular file"},
		"too large": {large, "is 10.0 MiB, but the limit of recognize is 10 MiB: use `enqueue enterprise " + large + "`"},
		"text":      {put(t, dir, "text.wav", []byte("no sound here")), "is neither audio nor video: its content is text/plain"},
		"bad name":  {put(t, dir, "\xff.wav", testaudio.WAV(100*time.Millisecond, "1")), "has a path that is not valid UTF-8, which a task cannot hold: rename the file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readFile(t.Context(), tasks.Recognize, c.path)
			require.EqualError(t, err, c.want)
		})
	}
	_, err := readFile(t.Context(), tasks.Enterprise, large)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = readFile(ctx, tasks.Enterprise, large)
	require.ErrorIs(t, err, context.Canceled)
}

func TestExpiryIsReadFromSignedURLs(t *testing.T) {
	t.Parallel()
	at := func(text string) int64 {
		v, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return v.Unix()
	}
	for raw, want := range map[string]int64{
		"https://h/a": 0,
		"https://h/a?X-Amz-Date=20260131T120000Z&X-Amz-Expires=3600":            at("2026-01-31T13:00:00Z"),
		"https://h/a?x-goog-date=20260131T120000Z&x-goog-expires=60":            at("2026-01-31T12:01:00Z"),
		"https://h/a?AWSAccessKeyId=x&Expires=1769860800&Signature=y":           1769860800,
		"https://h/a?exp=1769860800":                                            1769860800,
		"https://h/a?exp=1769860800&Expires=1769860000":                         1769860000,
		"https://h/a?sv=2024-01-01&se=2026-01-31T12%3A00%3A00Z&sig=x":           at("2026-01-31T12:00:00Z"),
		"https://h/a?se=2026-01-31&sig=x":                                       at("2026-01-31T00:00:00Z"),
		"https://h/a?se=2026-01-31":                                             0,
		"https://h/a?exp=soon&Expires=30&X-Amz-Date=yesterday&X-Amz-Expires=10": 0,
		"https://h/a?X-Amz-Expires=3600":                                        0,
	} {
		require.Equal(t, want, expiry(raw), raw)
	}
}
