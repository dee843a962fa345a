package cli

import "runtime/debug"

// version is set by a release build: -ldflags "-X reprise/internal/cli.version=v1.2.3".
var version string

// Version returns the version of this build: of the release, else of the module, which the go command derives from the
// commit. It returns "devel" if nothing is known.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
