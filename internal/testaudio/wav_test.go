package testaudio_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/testaudio"
)

func TestWAVHasTheLengthItsHeaderStates(t *testing.T) {
	t.Parallel()
	b := testaudio.WAV(250*time.Millisecond, "a")
	require.Len(t, b, 44+2000)
	require.EqualValues(t, len(b)-8, binary.LittleEndian.Uint32(b[4:]))
	require.EqualValues(t, 2000, binary.LittleEndian.Uint32(b[40:]))
}

func TestWAVDependsOnTheSeedOnly(t *testing.T) {
	t.Parallel()
	first, again, other := testaudio.WAV(time.Second, "a"), testaudio.WAV(time.Second, "a"), testaudio.WAV(time.Second, "b")
	require.Equal(t, first, again)
	require.NotEqual(t, first, other)
}
