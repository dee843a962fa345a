package cli

import "runtime/debug"

// version is set by a release build: -ldflags "-X reprise/internal/cli.version=v1.2.3".
var version string

// Version returns the version of this build: of the release, else of the module, else the commit, with "-dirty" for
// uncommitted changes. It returns "devel" if nothing is known.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	switch {
	case version != "":
		return version
	case !ok:
		return "devel"
	case info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	}
	revision, dirty := "devel", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	return revision + dirty
}
