package main

import (
	"slices"
	"strings"

	"reprise/internal/settings"
)

// didYouMean is " – did you mean X?" when a known name is near, else "".
func didYouMean(word string, known []string) string {
	known = distinct(slices.Clone(known))
	if near := settings.Nearest(strings.ToLower(word), known); near != "" {
		return " – did you mean " + near + "?"
	}
	return ""
}
