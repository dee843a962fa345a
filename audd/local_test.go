package audd_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/audd"
	"reprise/internal/proctest"
)

func opened(r io.Reader, size int64) (audd.Audio, *source) {
	src := &source{Reader: r}
	return audd.Audio{Open: func() (io.ReadCloser, int64, error) { return src, size, nil }}, src
}

func TestUnusableAudioIsALocalErrorAndNothingIsSent(t *testing.T) {
	t.Parallel()
	s := serve(t, answer(200, noMatch))
	c := newClient(t, s.URL)
	empty, emptySource := opened(strings.NewReader(""), 0)
	for name, in := range map[string]audd.Audio{
		"neither URL nor file": {},
		"both":                 {URL: "https://a.test/", Open: audio([]byte("a")).Open},
		"open fails":           {Open: func() (io.ReadCloser, int64, error) { return nil, 0, fs.ErrNotExist }},
		"no reader":            {Open: func() (io.ReadCloser, int64, error) { return nil, 1, nil }},
		"unknown size":         {Open: func() (io.ReadCloser, int64, error) { return &source{Reader: strings.NewReader("a")}, -1, nil }},
		"empty":                empty,
	} {
		_, err := c.Upload(t.Context(), audd.UploadRequest{Audio: in})
		e := failed(t, err)
		require.Equal(t, audd.KindLocal, e.Kind, name)
		require.Equal(t, audd.PhaseUnsent, e.Phase, name)
		require.Equal(t, name == "open fails", errors.Is(err, fs.ErrNotExist), name)
	}
	_, err := c.Enterprise(t.Context(), audd.EnterpriseRequest{Audio: audio([]byte("a")), SkipFirstSeconds: 1, UseTimecode: true})
	require.Equal(t, audd.KindLocal, failed(t, err).Kind)
	require.True(t, emptySource.closed.Load())
	require.Empty(t, s.seen())
}

// brokenReader returns data and then err.
type brokenReader struct {
	data io.Reader
	err  error
}

func (b brokenReader) Read(p []byte) (int, error) {
	n, err := b.data.Read(p)
	if errors.Is(err, io.EOF) {
		return n, b.err
	}
	return n, err
}

type panickingReader struct{}

func (panickingReader) Read([]byte) (int, error) { panic("read panic") }

func TestChangedAudioIsNeverSentCompletely(t *testing.T) {
	t.Parallel()
	disk := errors.New("input/output error")
	const size = 300_000
	for name, c := range map[string]struct {
		reader io.Reader
		text   string
		cause  error
	}{
		"shorter":     {bytes.NewReader(make([]byte, size-1)), "shorter than", nil},
		"longer":      {bytes.NewReader(make([]byte, size+1)), "longer than", nil},
		"read error":  {brokenReader{bytes.NewReader(make([]byte, size/2)), disk}, "input/output", disk},
		"error first": {brokenReader{strings.NewReader(""), disk}, "input/output", disk},
		"error last":  {brokenReader{bytes.NewReader(make([]byte, size)), disk}, "input/output", disk},
		"panic":       {panickingReader{}, "read panic", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := plain(t, drain)
			in, src := opened(c.reader, size)
			_, err := newClient(t, raw.URL).Recognize(t.Context(), audd.RecognizeRequest{Audio: in})
			e := failed(t, err)
			require.Equal(t, audd.KindLocal, e.Kind)
			// The call is unsent if the head is still buffered when the reader fails.
			require.NotEqual(t, audd.PhaseAnswered, e.Phase)
			require.ErrorContains(t, err, c.text)
			if c.cause != nil {
				require.ErrorIs(t, err, c.cause)
			}
			require.True(t, src.closed.Load())
			// The client may connect before the server accepts.
			proctest.Eventually(t, func() bool { return raw.accepted.Load() == 1 })
		})
	}
}

// stuck is a reader that blocks until it is closed, like a pipe or a network file.
type stuck struct{ closed chan struct{} }

func (s stuck) Read([]byte) (int, error) {
	<-s.closed
	return 0, fs.ErrClosed
}

func (s stuck) Close() error {
	close(s.closed)
	return nil
}

func TestBlockedReaderEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	raw := plain(t, drain)
	c := newClient(t, raw.URL, withTimeout(50*time.Millisecond))
	_, err := c.Recognize(t.Context(), audd.RecognizeRequest{Audio: audd.Audio{
		Open: func() (io.ReadCloser, int64, error) { return stuck{make(chan struct{})}, 10, nil },
	}})
	require.Equal(t, audd.KindTransport, failed(t, err).Kind, "the deadline is the cause, not the closed source")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestReaderIsClosedAfterEveryCall(t *testing.T) {
	t.Parallel()
	s := serve(t, answer(200, noMatch))
	in, src := opened(strings.NewReader("abc"), 3)
	_, err := newClient(t, s.URL).Recognize(t.Context(), audd.RecognizeRequest{Audio: in})
	require.NoError(t, err)
	require.True(t, src.closed.Load())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in, src = opened(strings.NewReader("abc"), 3)
	_, err = newClient(t, s.URL).Recognize(ctx, audd.RecognizeRequest{Audio: in})
	e := failed(t, err)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, audd.KindTransport, e.Kind)
	require.Equal(t, audd.PhaseUnsent, e.Phase)
	require.True(t, src.closed.Load())
	require.Len(t, s.seen(), 1)
}
