package tasks

import (
	"fmt"
	"strings"
	"time"
)

// Path is one of the three kinds of AudD call. They differ in cost and risk,
// so each has its own queue, slots, limits and deadlines.
type Path string

// The closed set of paths.
const (
	Recognize  Path = "recognize"  // a clip, 1 unit (AudD "/")
	Enterprise Path = "enterprise" // a long recording, 1 unit per 12 s scanned
	Upload     Path = "upload"     // a custom-catalog upload, billed each time
)

// Paths lists every path in a stable order.
var Paths = []Path{Recognize, Enterprise, Upload}

// ParsePath turns a name into a Path.
func ParsePath(name string) (Path, error) {
	for _, p := range Paths {
		if string(p) == name {
			return p, nil
		}
	}
	return "", fmt.Errorf("unknown path %q: want recognize, enterprise or upload", name)
}

// Type is the asynq task type of the path, for example "audd:recognize".
func (p Path) Type() string { return "audd:" + string(p) }

// pathOfType is the inverse of Type.
func pathOfType(typ string) (Path, bool) {
	p, err := ParsePath(strings.TrimPrefix(typ, "audd:"))
	return p, err == nil && p.Type() == typ
}

// CallTimeout is the default bound on one AudD call on the path: 60 s, 1 h and
// 10 min. AudD's own SDKs use 60 s and 1 h; their 60 s for uploads is too
// short for large tracks on slow links.
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

// Queue is the asynq queue of a path and an optional group:
// "recognize" or "recognize.ugc".
func (p Path) Queue(group string) string {
	if group == "" {
		return string(p)
	}
	return string(p) + "." + group
}

// SplitQueue is the inverse of Path.Queue.
func SplitQueue(queue string) (p Path, group string, err error) {
	name, group, _ := strings.Cut(queue, ".")
	p, err = ParsePath(name)
	if err != nil {
		return "", "", fmt.Errorf("read queue %q: %w", queue, err)
	}
	return p, group, nil
}
