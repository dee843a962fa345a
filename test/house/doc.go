// Package house has no code, only tests of the tree itself: imports, sizes, words,
// and whether the statements of the documents are true.
package house
