package redisconn

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/redistest"
)

func TestASocketIsLookedAtUnlessItJustAnswered(t *testing.T) {
	t.Parallel()
	plain, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", redistest.NewServer(t).Addr())
	require.NoError(t, err)
	defer plain.Close()
	conn := proven(plain)
	looked := func() (looked bool) {
		raw, err := conn.(syscall.Conn).SyscallConn()
		require.NoError(t, err)
		require.NoError(t, raw.Read(func(uintptr) bool { looked = true; return true }))
		return looked
	}
	require.True(t, looked(), "it has not answered yet")
	_, err = conn.Write([]byte("PING\r\n"))
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 16))
	require.NoError(t, err)
	answered := &conn.(*provenConn).answered
	require.Positive(t, answered.Load())
	answered.Add(int64(time.Hour)) // however long this test was kept waiting
	require.False(t, looked())
	answered.Add(-int64(time.Hour + provenFor))
	require.True(t, looked(), "it has rested")
	require.NoError(t, plain.SetReadDeadline(time.Now()))
	_, err = conn.Read(make([]byte, 16))
	require.Error(t, err)
	require.NoError(t, plain.SetReadDeadline(time.Time{}))
	require.True(t, looked(), "a read that failed is no answer")
}

func TestAConnectionWithoutASocketIsLeftAlone(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer b.Close()
	defer a.Close()
	require.Equal(t, a, proven(a))
}
