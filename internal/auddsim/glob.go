package auddsim

import "strings"

// globMatch reports whether text fits pattern, in which * stands for any text (slashes too) and ? for one byte. Case is
// ignored. It never backtracks further than the last star, so a long URL costs at most len(pattern) × len(text).
func globMatch(pattern, text string) bool {
	pattern, text = strings.ToLower(pattern), strings.ToLower(text)
	star, mark := -1, 0
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
