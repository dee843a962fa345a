package tasks

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Path is a kind of AudD call. The three paths differ in cost and risk, so each has its own queue, slots, limits and
// timeouts.
type Path string

// The closed set of paths.
const (
	Recognize  Path = "recognize"  // a clip, 1 unit (AudD "/")
	Enterprise Path = "enterprise" // a long recording, 1 unit per 12 s scanned
	Upload     Path = "upload"     // a custom-catalog upload, billed each time
)

// Paths lists every path in a stable order.
var Paths = []Path{Recognize, Enterprise, Upload}

// ParsePath returns the path with a name, or an error.
func ParsePath(name string) (Path, error) {
	for _, p := range Paths {
		if string(p) == name {
			return p, nil
		}
	}
	return "", fmt.Errorf("unknown path %q: must be recognize, enterprise or upload", name)
}

// Type returns the asynq task type of the path, for example "audd:recognize".
func (p Path) Type() string { return "audd:" + string(p) }

// pathOfType returns the path of an asynq task type; false for other types.
func pathOfType(typ string) (Path, bool) {
	p, err := ParsePath(strings.TrimPrefix(typ, "audd:"))
	return p, err == nil && p.Type() == typ
}

// CallTimeout returns the time that Timeout reserves for one AudD call on the path. It is the default of the AudD
// client (audd.Timeouts): 60 s for recognize, 1 h for enterprise, 10 min for upload.
func (p Path) CallTimeout() time.Duration {
	switch p {
	case Enterprise:
		return time.Hour
	case Upload:
		return 10 * time.Minute
	default:
		return time.Minute
	}
}

// Queue returns the asynq queue of a path and an optional group: "recognize" or "recognize.ugc".
func (p Path) Queue(group string) string {
	if group == "" {
		return string(p)
	}
	return string(p) + "." + group
}

// SplitQueue returns the path and group of a queue that Path.Queue has named. Other queue names are an error.
func SplitQueue(queue string) (p Path, group string, err error) {
	name, group, grouped := strings.Cut(queue, ".")
	p, err = ParsePath(name)
	if err == nil && grouped && group == "" {
		err = errors.New("the group name is empty")
	}
	if err = errors.Join(err, ValidateGroup(group)); err != nil {
		return "", "", fmt.Errorf("read queue %q: %w", queue, err)
	}
	return p, group, nil
}

// Owns reports whether a queue is the path's own or that of one of its groups.
func (p Path) Owns(queue string) bool {
	path, _, err := SplitQueue(queue)
	return err == nil && path == p
}

// ValidateGroup returns an error unless a group's name fits into Redis keys, metric labels and URLs: up to 63
// lower-case letters, digits, "-" and "_", beginning with a letter or digit. "" means no group and is valid.
func ValidateGroup(group string) error {
	if len(group) > 63 {
		return fmt.Errorf("group of %d characters: must be at most 63", len(group))
	}
	for i, c := range group {
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '_') {
			return fmt.Errorf("group %q: must be lower-case letters, digits, - and _, beginning with a letter or digit", group)
		}
	}
	return nil
}
