package ops

import "slices"

// mapped returns f of every element. It never returns nil, which JSON would write as null.
func mapped[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}

// distinct sorts a list and removes repeated texts. It never returns nil.
func distinct(list []string) []string {
	slices.Sort(list)
	return append([]string{}, slices.Compact(list)...)
}

// filled returns the different texts of a list that are not empty, sorted.
func filled(list []string) []string {
	return slices.DeleteFunc(distinct(list), func(s string) bool { return s == "" })
}
