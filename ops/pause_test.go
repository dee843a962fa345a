package ops

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExpandQueues_ReplacesAPathByItsQueues(t *testing.T) {
	t.Parallel()
	all := []string{"recognize", "recognize.archive", "enterprise", "upload"}
	got, err := expandQueues([]string{"recognize", "recognize.archive", "upload"}, false, all)
	require.NoError(t, err)
	require.Equal(t, []string{"recognize", "recognize.archive", "upload"}, got)
	got, err = expandQueues([]string{"recognize"}, true, all)
	require.NoError(t, err)
	require.Equal(t, []string{"recognize"}, got)
	_, err = expandQueues([]string{"enterprize"}, false, all)
	require.ErrorContains(t, err, "did you mean enterprise?")
}
