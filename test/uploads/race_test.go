//go:build race

package uploads

// raceFlags build the commands as the tests are built.
var raceFlags = []string{"-race"}
