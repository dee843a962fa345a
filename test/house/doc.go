// Package house holds no code, only tests of the tree itself: who may import
// whom, how long a file may be, whether what README says exists. A rule that
// nobody checks is a wish.
package house
