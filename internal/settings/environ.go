package settings

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"reprise/internal/text"
)

// EnvPrefix begins the name of every environment variable that is read here.
const EnvPrefix = "REPRISE_"

// otherVariables are valid, but belong to no setting: the folder of worker dev, the settings file, and the folder that
// docker compose mounts.
var otherVariables = []string{"DATA", "CONFIG", "AUDIO"}

// kubernetes matches the variables that Kubernetes sets in every container for a service named reprise or
// reprise-redis. It matches the address in the value, too, because a setting may have such a name.
var kubernetes = regexp.MustCompile(`^REPRISE_(.+_)?(SERVICE_HOST=|SERVICE_PORT(_\w+)?=\d|PORT=\w+://|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?=)`)

// EnvName returns the environment variable of a key.
func EnvName(key string) string {
	return EnvPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key))
}

// Getenv returns the value of a variable in environ, a list as os.Environ returns it. If the variable occurs several
// times, the last value counts.
func Getenv(environ []string, name string) string {
	for _, pair := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// unknownVariables returns an error for every REPRISE_ variable that is neither a setting nor in also, because a
// mistyped variable would have no effect. An empty variable counts as not set.
func unknownVariables(ks keys, src Source, also []string) (errs []error) {
	known := slices.Clone(otherVariables)
	for _, k := range ks {
		for _, path := range k.paths() {
			known = append(known, strings.TrimPrefix(EnvName(path), EnvPrefix))
		}
	}
	for _, pair := range src.Environ {
		name, value, _ := strings.Cut(pair, "=")
		word, ours := strings.CutPrefix(name, EnvPrefix)
		if !ours || value == "" || kubernetes.MatchString(pair) || slices.Contains(known, word) || slices.Contains(also, name) {
			continue
		}
		inFile := slices.IndexFunc(ks, func(k key) bool {
			section, _, found := strings.Cut(k.path, ".*")
			return found && strings.HasPrefix(name, EnvName(section)+"_")
		})
		near := text.Nearest(word, known)
		switch {
		case inFile >= 0:
			section, _, _ := strings.Cut(ks[inFile].path, ".*")
			errs = append(errs, fmt.Errorf("%s: %s can be set in a settings file only (--config or %sCONFIG)", name, section, EnvPrefix))
		case near != "":
			errs = append(errs, fmt.Errorf("%s: unknown variable, did you mean %s%s?", name, EnvPrefix, near))
		case !src.Shared:
			errs = append(errs, fmt.Errorf("%s: unknown variable; the variable of a setting is %s followed by its key, with _ in place of dots", name, EnvPrefix))
		}
	}
	return errs
}
