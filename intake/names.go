package intake

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"reprise/admission"
	"reprise/internal/settings"
	"reprise/tasks"
)

// UnknownNameError says that a request names a source or a group that no
// worker has: its tasks would wait for ever.
type UnknownNameError struct {
	What  string // source, group
	Name  string
	Known []string
}

func (e *UnknownNameError) Error() string {
	near, known := "", "there is none"
	if n := settings.Nearest(e.Name, e.Known); n != "" {
		near = ", did you mean " + n + "?"
	}
	if len(e.Known) > 0 {
		known = "there is " + strings.Join(e.Known, ", ")
	}
	hint := ""
	switch e.What {
	case "group":
		hint = "; `inspect group set NAME weight=1` makes one"
	case "source":
		hint = "; --source names it"
	}
	return fmt.Sprintf("no worker has the %s %.64q%s (%s%s)", e.What, e.Name, near, known, hint)
}

// names are the sources and groups in force, as the workers' settings and
// people have put them into Redis.
type names struct {
	sources []string
	groups  map[string]group
}

type group struct {
	weight int64
	source string // pinned; "" = any
}

// inForce reads the names; nil when nobody can tell: without Redis, or before
// the first worker has run on it.
func (in *Intake) inForce(ctx context.Context) (*names, error) {
	if in.opts.Redis == nil {
		return nil, nil //nolint:nilnil // nobody can tell
	}
	gates, err := admission.New(in.opts.Redis, admission.DefaultConfig())
	if err != nil {
		return nil, err
	}
	limits, revision, err := gates.LimitsInForce(ctx)
	if err != nil || revision.Number == 0 {
		return nil, err
	}
	n := &names{groups: map[string]group{}}
	for _, l := range limits {
		if name, ok := strings.CutPrefix(l.Scope, admission.ScopeOfGroup("")); ok {
			g := n.groups[name]
			g.weight = max(g.weight, 1)
			switch weight, err := strconv.ParseInt(l.Value, 10, 64); {
			case l.Name == "source":
				g.source = l.Value
			case l.Name == "weight" && err == nil:
				g.weight = max(weight, 1)
			}
			n.groups[name] = g
		} else if source, _, ok := strings.Cut(l.Scope, ":"); ok && !slices.Contains(n.sources, source) {
			n.sources = append(n.sources, source)
		}
	}
	return n, nil
}

// checkNames refuses what no worker would ever do: all inputs of an unknown
// group, and the uploads of an unknown source.
func (n *names) checkNames(req Request, inputs []found) error {
	if n == nil {
		return nil
	}
	pinned := ""
	if req.Group != "" {
		g, ok := n.groups[req.Group]
		if !ok {
			known := make([]string, 0, len(n.groups))
			for name := range n.groups {
				known = append(known, name)
			}
			slices.Sort(known)
			return &UnknownNameError{What: "group", Name: req.Group, Known: known}
		}
		pinned = g.source
	}
	if req.Path != tasks.Upload {
		return nil
	}
	all := cleanSource(req.Params.Source)
	for i := range inputs {
		source := inputs[i].source
		switch {
		case inputs[i].refusal != "" || source == "":
		case !slices.Contains(n.sources, source):
			err := &UnknownNameError{What: "source", Name: source, Known: n.sources}
			if source == all { // said of the request, not of this input
				return err
			}
			inputs[i].refusal = "cannot be uploaded: " + err.Error()
		case pinned != "" && source != pinned:
			inputs[i].refusal = fmt.Sprintf("is for the source %s, but the group %s belongs to %s", source, req.Group, pinned)
		}
	}
	return nil
}

// heavier says whether a task in the request's queue would be taken before one
// in queue.
func (n *names) heavier(own, queue string) bool {
	weight := func(name string) int64 {
		if n == nil || name == "" {
			return 1
		}
		return max(1, n.groups[name].weight)
	}
	_, other, err := tasks.SplitQueue(queue)
	return err == nil && weight(own) > weight(other)
}

func cleanSource(name string) string { return strings.ToLower(strings.TrimSpace(name)) }
