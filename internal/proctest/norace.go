//go:build !race

package proctest

// raceFlags makes the commands be built like the tests.
var raceFlags []string
