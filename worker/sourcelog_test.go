package worker

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/admission"
	"reprise/tasks"
)

func TestSourceChangeIsLoggedOnceInAnyOrderOfReplies(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newSourceLog(slog.New(slog.NewTextHandler(&out, nil)))
	permit := &admission.Permit{Admitted: admission.Admitted{Source: "main", Path: tasks.Recognize}}
	refusal := &admission.Refusal{Gate: admission.GateBreaker, Source: "main", RetryAfter: time.Minute}
	before := time.Now().Add(-time.Second)
	lines := func() int { return strings.Count(out.String(), "\n") }

	s.granted(permit, before)
	require.Zero(t, lines(), "a source is available unless a line says otherwise")
	s.refused(tasks.Recognize, refusal, before)
	s.refused(tasks.Recognize, refusal, time.Now())
	require.Equal(t, 1, lines(), out.String())
	s.granted(permit, before) // decided before it was blocked, delivered after
	require.Equal(t, 1, lines(), out.String())
	s.granted(permit, time.Now())
	require.Equal(t, 2, lines(), out.String())
	s.refused(tasks.Recognize, refusal, before)
	require.Equal(t, 2, lines(), out.String())
	refusal.Gate = admission.GateHalt
	s.refused(tasks.Recognize, refusal, time.Now())
	require.Equal(t, 3, lines(), out.String())
}

// A throttle without a Retry-After blocks for three quarters of a call's latency,
// at most 2 s.
func TestBriefThrottleIsNotLogged(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newSourceLog(slog.New(slog.NewTextHandler(&out, nil)))
	refusal := &admission.Refusal{Gate: admission.GateThrottle, Source: "main", RetryAfter: 2 * time.Second}
	s.refused(tasks.Recognize, refusal, time.Now())
	require.Empty(t, out.String())
	refusal.RetryAfter += time.Millisecond
	s.refused(tasks.Recognize, refusal, time.Now())
	require.Contains(t, out.String(), "source takes no calls")
}
