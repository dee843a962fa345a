//go:build !race

package proctest

// raceFlags build the commands as the tests are built.
var raceFlags []string
