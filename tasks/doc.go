// Package tasks is the contract between producers and workers: task types, queue names, versioned payloads, key
// derivation, and the closed enums path, outcome and verdict. It imports nothing else of this module.
//
// All values are plain data and safe for concurrent use.
package tasks
