package tasks

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSplitQueueReadsEveryNameThatQueueReturns(t *testing.T) {
	t.Parallel()
	for _, path := range Paths {
		for group, want := range map[string]string{"": string(path), "ugc": string(path) + ".ugc", "a-b_c9": string(path) + ".a-b_c9"} {
			require.NoError(t, ValidateGroup(group))
			queue := path.Queue(group)
			assert.Equal(t, want, queue)
			p, g, err := SplitQueue(queue)
			require.NoError(t, err)
			assert.Equal(t, path, p)
			assert.Equal(t, group, g)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		group := rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,62}`).Draw(t, "group")
		path := rapid.SampledFrom(Paths).Draw(t, "path")
		p, g, err := SplitQueue(path.Queue(group))
		if err != nil || p != path || g != group {
			t.Fatalf("%s %s: %v", p, g, err)
		}
	})
}

func TestSplitQueueRejectsOtherQueues(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"", "default", "lyrics.ugc", "recognize.", "recognize.a.b", "recognize.UGC", "Recognize", "recognize.{x}", " recognize"} {
		_, _, err := SplitQueue(queue)
		assert.Error(t, err, "%q", queue)
	}
}

func TestValidateGroupRejectsUnsafeNames(t *testing.T) {
	t.Parallel()
	for _, group := range []string{"A", "ü", "a b", "a/b", "a:b", "a.b", "{a}", "-a", "_a", "\xff", strings.Repeat("a", 64)} {
		require.Error(t, ValidateGroup(group), "%q", group)
	}
	assert.NoError(t, ValidateGroup(strings.Repeat("a", 63)))
}

func TestParsePathAcceptsTheThreePaths(t *testing.T) {
	t.Parallel()
	for _, path := range Paths {
		got, err := ParsePath(string(path))
		require.NoError(t, err)
		assert.Equal(t, path, got)
		back, known := pathOfType(path.Type())
		assert.True(t, known)
		assert.Equal(t, path, back)
	}
	_, err := ParsePath("lyrics")
	assert.Error(t, err)
}

// Enum values are metric labels, log values and column values.
func TestEnumValuesAreUniqueLowerCaseWords(t *testing.T) {
	t.Parallel()
	word := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	seen := map[string]bool{}
	check := func(kind, w string) {
		assert.Regexp(t, word, w)
		assert.False(t, seen[kind+w], "%s %s is listed twice", kind, w)
		seen[kind+w] = true
	}
	for _, o := range Outcomes {
		check("outcome", string(o))
	}
	for _, v := range Verdicts {
		check("verdict", string(v))
	}
	for _, p := range Paths {
		check("path", string(p))
	}
	assert.Len(t, Outcomes, 27)
	assert.Len(t, Verdicts, 5)
	assert.Len(t, Paths, 3)
}

func TestKeysHaveTheFormOfATaskID(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SampledFrom(Paths).Draw(t, "path")
		in := Input{Kind: URLInput, URL: rapid.String().Draw(t, "url")}
		key := Key(path, in, Params{Source: rapid.String().Draw(t, "source"), Market: rapid.String().Draw(t, "market")})
		if !regexp.MustCompile(`^(recognize|enterprise|upload)_[a-z2-7]{52}$`).MatchString(key) {
			t.Fatalf("key %q", key)
		}
	})
}

// Values that contain the separators of the hashed text must not collide with
// other values.
func TestKeysDifferWhenAnyParameterDiffers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z=:0-9\n]{0,12}`)
		a := Params{Return: []string{text.Draw(t, "return a")}, Market: text.Draw(t, "market a")}
		b := Params{Return: []string{text.Draw(t, "return b")}, Market: text.Draw(t, "market b")}
		same := true
		for _, f := range keyFields[Recognize] {
			same = same && f.value(a) == f.value(b)
		}
		if got := Key(Recognize, file(hashA), a) == Key(Recognize, file(hashA), b); got != same {
			t.Fatalf("%+v and %+v: equal keys %v, equal values %v", a, b, got, same)
		}
	})
}
