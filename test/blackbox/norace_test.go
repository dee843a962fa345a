//go:build !race

package blackbox

// raceFlags build the commands as the tests are built.
var raceFlags []string
