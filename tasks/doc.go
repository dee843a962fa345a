// Package tasks is the contract between those who enqueue and those who work:
// task types, queue names, versioned payloads, key derivation, and the closed
// enums path, outcome and verdict. It imports nothing else of this module, so
// every package may speak these words.
//
// All values are plain data: everything here is safe for concurrent use.
package tasks
