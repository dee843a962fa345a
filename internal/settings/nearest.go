package settings

import "strings"

// Nearest returns the known name that word looks like a typo of, or "". Words of
// up to 4 letters may have one typo, longer ones two; two swapped letters are
// one. A name that is cut short or goes on too long counts, too.
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

// distance is the optimal string alignment distance of two words.
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
