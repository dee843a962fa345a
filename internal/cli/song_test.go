package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSongDescribesAResultInAFewWords(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]string{
		`{"artist":"Paper Boats","title":"Adrift"}`: "Paper Boats – Adrift",
		`null`: "", `[]`: "", `[{"songs":[]}]`: "", `"text"`: "", ``: "",
		`[{"songs":[{"artist":"A","title":"B"},{"artist":"A","title":"B"}]}]`:                                             "A – B",
		`[{"songs":[{"artist":"A","title":"B"},{"artist":"A","title":"B"}]},{"songs":[{"artist":"C","title":"D"}]}]`:      "A – B and 1 more song",
		`[{"songs":[{"artist":"A","title":"B"},{"artist":"E","title":"F"}]},{"songs":[{"artist":"C","title":"D"}]},null]`: "A – B and 2 more songs",
	} {
		require.Equal(t, want, Song([]byte(result)), result)
	}
}
