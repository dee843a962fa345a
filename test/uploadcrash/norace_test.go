//go:build !race

package uploadcrash

// raceFlags build the worker as the tests are built.
var raceFlags []string
