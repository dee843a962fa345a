//go:build race

package idempotency_test

import "flag"

// The race detector makes SQLite ten times slower; what it looks for is in the
// tests with goroutines.
func init() {
	if err := flag.Set("rapid.checks", "15"); err != nil {
		panic(err)
	}
}
