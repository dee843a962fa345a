//go:build race

package idempotency_test

const underRace = true
