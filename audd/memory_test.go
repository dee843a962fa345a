package audd_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/audd"
)

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Not parallel, because it counts the allocations of the whole process.
//
//nolint:paralleltest // see above
func TestUploadOf256MiBAllocatesLessThan2MiB(t *testing.T) {
	const size = 256 << 20
	var received int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received, _ = io.Copy(io.Discard, r.Body)
		answer(200, `{"status":"success","result":[]}`)(w, r)
	}))
	defer s.Close()
	c := newClient(t, s.URL)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := c.Enterprise(t.Context(), audd.EnterpriseRequest{Audio: audd.Audio{
		Open: func() (io.ReadCloser, int64, error) { return &source{Reader: io.LimitReader(zeros{}, size)}, size, nil },
	}})
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Greater(t, received, int64(size))
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2<<20), "bytes allocated by client and server")
}
