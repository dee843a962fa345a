package intake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"reprise/admission"
	"reprise/internal/text"
	"reprise/tasks"
)

// UnknownNameError means that no worker serves a source or a group. Its tasks would wait indefinitely.
type UnknownNameError struct {
	What  string // source or group
	Name  string
	Known []string
}

func (e *UnknownNameError) Error() string {
	known, next := "none is configured", "name one with --source"
	if len(e.Known) > 0 {
		known = "known: " + strings.Join(e.Known, ", ")
	}
	if near := text.Nearest(e.Name, e.Known); near != "" {
		known = "did you mean " + near + "? " + known
	}
	if e.What == "group" {
		next = "create it with `inspect group set NAME weight=1`"
	}
	return fmt.Sprintf("no worker serves the %s %.64q (%s): %s", e.What, e.Name, known, next)
}

// servedNames are the sources and groups that workers serve. They come from the limits in Redis. nil = unknown.
type servedNames struct {
	sources []string
	groups  map[string]group
}

type group struct {
	weight int64
	source string // the group uses only this one; "" = any
}

// readNames reads the served names. They are unknown without Redis and before the first worker has run on it.
func (in *Intake) readNames(ctx context.Context) (*servedNames, error) {
	if in.opts.Redis == nil {
		return nil, nil //nolint:nilnil // unknown
	}
	gates, err := admission.New(in.opts.Redis, admission.DefaultConfig())
	if err != nil {
		return nil, err
	}
	limits, revision, err := gates.LimitsInForce(ctx)
	if err != nil || revision.Number == 0 {
		return nil, err
	}
	n := &servedNames{groups: map[string]group{}}
	for _, l := range limits {
		if name, ok := strings.CutPrefix(l.Scope, admission.ScopeOfGroup("")); ok {
			g := n.groups[name]
			switch l.Name {
			case "source":
				g.source = l.Value
			case "weight":
				g.weight, _ = strconv.ParseInt(l.Value, 10, 64) // 0 counts as 1
			}
			n.groups[name] = g
		} else if source, _, ok := strings.Cut(l.Scope, ":"); ok && !slices.Contains(n.sources, source) {
			n.sources = append(n.sources, source)
		}
	}
	return n, nil
}

// check refuses what no worker would run: a request for an unknown group or source (its error), and single uploads
// to an unknown source.
func (n *servedNames) check(req Request, inputs []input) error {
	if n == nil {
		return nil
	}
	g, ok := n.groups[req.Group]
	if req.Group != "" && !ok {
		return &UnknownNameError{What: "group", Name: req.Group, Known: slices.Sorted(maps.Keys(n.groups))}
	}
	if req.Path != tasks.Upload {
		return nil
	}
	forAll := normalSource(req.Params.Source)
	for i := range inputs {
		source := inputs[i].source
		switch {
		case inputs[i].refused != "" || source == "":
		case !slices.Contains(n.sources, source):
			err := &UnknownNameError{What: "source", Name: source, Known: n.sources}
			if source == forAll {
				return err
			}
			inputs[i].refused = "cannot be uploaded: " + err.Error()
		case g.source != "" && source != g.source:
			inputs[i].refused = fmt.Sprintf("is for the source %s, but the group %s uses only %s", source, req.Group, g.source)
		}
	}
	return nil
}

// heavier reports whether workers take the tasks of a group before the tasks in queue.
func (n *servedNames) heavier(name, queue string) bool {
	_, other, err := tasks.SplitQueue(queue)
	return n != nil && err == nil && max(1, n.groups[name].weight) > max(1, n.groups[other].weight)
}

// normalSource returns a source in the spelling of the workers' settings.
func normalSource(name string) string { return strings.ToLower(strings.TrimSpace(name)) }
