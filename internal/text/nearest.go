package text

import (
	"slices"
	"strings"
)

// DidYouMean returns " – did you mean X?" if a known word is near, else "".
func DidYouMean(word string, known []string) string {
	known = slices.Compact(slices.Sorted(slices.Values(known)))
	if near := Nearest(strings.ToLower(word), known); near != "" {
		return " – did you mean " + near + "?"
	}
	return ""
}

// Nearest returns the known word that word is a typo of, or "". A word of up to four letters may have one typo, a
// longer word two. Two swapped letters are one typo. A word that is cut short, or has further letters, matches too.
func Nearest(word string, known []string) string {
	best, found := 3, ""
	if len(word) < 5 {
		best = 2
	}
	for _, k := range known {
		if d := distance(word, k); d < best {
			best, found = d, k
		}
	}
	for _, k := range known {
		if found == "" && min(len(word), len(k)) > 3 && (strings.HasPrefix(k, word) || strings.HasPrefix(word, k)) {
			found = k
		}
	}
	return found
}

// distance returns the optimal string alignment distance of two words.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
