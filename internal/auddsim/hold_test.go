package auddsim

import (
	"context"
	"reprise/internal/proctest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRequestsAreHeldAtEachStage(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 4<<20)
	for stage, c := range map[string]struct {
		charged bool
		bytes   func(int64) bool
	}{
		StageBeforeBody:   {false, func(n int64) bool { return n < 1024 }},
		StageWithinBody:   {false, func(n int64) bool { return n >= 1<<20 && n < 1<<20+1024 }},
		StageAfterBody:    {true, func(n int64) bool { return n > 4<<20 }},
		StageBeforeAnswer: {true, func(n int64) bool { return n > 4<<20 }},
	} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			s := Start(t)
			id := s.Hold(Hold{Stage: stage, Name: "*.mp3", After: 1 << 20, Times: 1})
			got := make(chan reply, 1)
			client, req := newClient(t), clip("a.mp3", big).request(t, s.URL)
			go func() { got <- do(client, req) }()
			held, err := s.WaitHeld(t.Context(), 1)
			require.NoError(t, err)
			require.Equal(t, stage, held[0].Stage)
			require.Equal(t, "a.mp3", held[0].Name)
			require.Equal(t, c.charged, s.Bill().Units == 1)
			require.True(t, s.Requests(Filter{})[0].Active)

			require.NoError(t, send(t, s, clip("a.mp3", "x")).err, "Times 1 holds one request")
			require.Equal(t, 1, s.Release(id))
			require.NoError(t, (<-got).err)
			require.Empty(t, s.Held())
			require.EqualValues(t, 2, s.Bill().Units)
			require.True(t, c.bytes(heldBytes(t, stage, big)), "bytes read while held")
		})
	}
}

// heldBytes is how much of the body is read when a request is held and its client leaves.
func heldBytes(t *testing.T, stage, data string) int64 {
	s := Start(t)
	s.Hold(Hold{Stage: stage, Name: "*.mp3", After: 1 << 20})
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan reply, 1)
	client, req := newClient(t), clip("a.mp3", data).request(t, s.URL).WithContext(ctx)
	go func() { got <- do(client, req) }()
	_, err := s.WaitHeld(t.Context(), 1)
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, (<-got).err, context.Canceled)
	require.NoError(t, s.Close())
	done := s.Requests(Filter{})
	require.Len(t, done, 1)
	require.Contains(t, []string{OutcomeClientGone, OutcomeStopped}, done[0].Outcome)
	return done[0].BodyBytes
}

func TestHoldsAreSetAndReleasedOverHTTP(t *testing.T) {
	t.Parallel()
	s := Start(t)
	var id struct{ ID string }
	require.Equal(t, 200, admin(t, s, "POST", "hold", `{"stage":"after_body","hash":"`+hashOf("x")+`","path":"upload"}`, &id))
	require.NoError(t, send(t, s, upload(1, "y")).err)
	got := make(chan reply, 1)
	client, req := newClient(t), upload(2, "x").request(t, s.URL)
	go func() { got <- do(client, req) }()
	var held struct {
		Count int
		Held  []Held
	}
	proctest.Eventually(t, func() bool { admin(t, s, "GET", "held", "", &held); return held.Count == 1 })
	require.EqualValues(t, 2, *held.Held[0].AudioID)
	require.Equal(t, 200, admin(t, s, "POST", "release?id="+id.ID, "", nil))
	require.NoError(t, (<-got).err)
	require.Equal(t, 400, admin(t, s, "POST", "hold", `{"stage":"lunch"}`, nil))
	require.Equal(t, 400, admin(t, s, "POST", "hold", `{"stage":"before_body","hash":"00"}`, nil))
	require.Equal(t, 400, admin(t, s, "POST", "tokens", `{}`, nil))
	require.Equal(t, 200, admin(t, s, "POST", "tokens", `{"token":"token-a","code":903}`, nil))
	require.Equal(t, 903, send(t, s, clip("a.mp3", "x")).code(t))
	require.Equal(t, 404, admin(t, s, "GET", "nothing", "", nil))
}
