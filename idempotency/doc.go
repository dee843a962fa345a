// Package idempotency is the upload ledger.
package idempotency
