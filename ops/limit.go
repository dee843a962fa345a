package ops

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"reprise/admission"
	"reprise/internal/text"
	"reprise/tasks"
)

// Limits reports on the limits and groups in force and changes them for all workers at once.
type Limits struct{ *base }

// LimitsReport is the limits in force.
type LimitsReport struct {
	Revision int64      `json:"revision"` // rises with every change; 0 = no worker has written limits yet
	By       string     `json:"by"`
	At       *time.Time `json:"at"`
	Limits   []Limit    `json:"limits"`
}

// Text returns a limit in the notation of Set. It returns the default of a limit that was never written.
func (r LimitsReport) Text(scope, name string) string {
	for _, l := range r.Limits {
		if l.Scope == scope && l.Name == name {
			return l.Text
		}
	}
	return unset(name)
}

// Scopes returns the scopes with a prefix, sorted.
func (r LimitsReport) Scopes(prefix string) []string {
	var out []string
	for _, l := range r.Limits {
		if strings.HasPrefix(l.Scope, prefix) {
			out = append(out, l.Scope)
		}
	}
	return distinct(out)
}

func limitsReport(limits []admission.Limit, rev admission.Revision) LimitsReport {
	return LimitsReport{rev.Number, text.Printable(rev.By), stamp(rev.At), mapped(limits, limitOf)}
}

// List returns the limits in force.
func (l *Limits) List(ctx context.Context) (LimitsReport, error) {
	g, err := l.gates(ctx)
	if err != nil {
		return LimitsReport{}, err
	}
	return limitsReport(g.limits, g.revision), nil
}

// LimitChange is a changed value in the notation of Set.
type LimitChange struct {
	Scope string `json:"scope"`
	Name  string `json:"name"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// LimitsChange is what changed, and the limits after the change.
type LimitsChange struct {
	Changes []LimitChange `json:"changes"`
	// NewGroup and Queues are set if the change made a group.
	NewGroup string   `json:"new_group,omitempty"`
	Queues   []string `json:"queues,omitempty"`
	LimitsReport
}

// Set changes limits. Each assignment is SCOPE.LIMIT=VALUE, such as main/recognize.concurrency=20. All assignments
// become one revision. If some are wrong, nothing is changed and the error names each of them.
func (l *Limits) Set(ctx context.Context, assignments []string, by string) (LimitsChange, error) {
	g, err := l.seeded(ctx)
	if err != nil {
		return LimitsChange{}, err
	}
	return l.set(ctx, g, assignments, by)
}

func (l *Limits) set(ctx context.Context, g *gates, assignments []string, by string) (LimitsChange, error) {
	var changes []admission.Limit
	var bad []error
	for _, a := range assignments {
		change, err := parseLimit(a, g.sources)
		bad = append(bad, err)
		changes = append(changes, change)
	}
	if err := errors.Join(bad...); err != nil {
		return LimitsChange{}, &InputError{err}
	}
	if _, err := g.SetLimits(ctx, changes, by); err != nil {
		return LimitsChange{}, err
	}
	after, rev, err := g.LimitsInForce(ctx)
	if err != nil {
		return LimitsChange{}, err
	}
	before := limitsReport(g.limits, g.revision)
	out := LimitsChange{LimitsReport: limitsReport(after, rev)}
	for _, c := range changes {
		scope := scopeText(c.Scope)
		out.Changes = append(out.Changes, LimitChange{scope, c.Name, before.Text(scope, c.Name), out.Text(scope, c.Name)})
	}
	return out, nil
}

// GroupStatus is the limits of a group, and the tasks in its queues.
type GroupStatus struct {
	Name    string         `json:"name"`
	Limits  map[string]any `json:"limits"` // values as in Limit
	Waiting int64          `json:"waiting"`
	Running int64          `json:"running"`
}

// GroupsReport is the groups in force.
type GroupsReport struct {
	Groups []GroupStatus `json:"groups"`
	// Limits are all limits in force.
	Limits LimitsReport `json:"-"`
}

// Groups returns the groups in force, by name.
func (l *Limits) Groups(ctx context.Context) (GroupsReport, error) {
	g, err := l.gates(ctx)
	if err != nil {
		return GroupsReport{}, err
	}
	r := GroupsReport{Groups: []GroupStatus{}, Limits: limitsReport(g.limits, g.revision)}
	for _, name := range g.groups {
		group := GroupStatus{Name: name, Limits: map[string]any{}}
		for _, limit := range r.Limits.Limits {
			if limit.Scope == admission.ScopeOfGroup(name) {
				group.Limits[limit.Name] = limit.Value
			}
		}
		stats, err := l.queue.AllStats(ctx, queuesOf(name))
		if err != nil {
			return r, err
		}
		for _, s := range stats {
			group.Waiting, group.Running = group.Waiting+s.Waiting(), group.Running+s.Active
		}
		r.Groups = append(r.Groups, group)
	}
	return r, nil
}

// SetGroup makes or changes a group. Each assignment is KEY=VALUE, such as ceiling=70%.
func (l *Limits) SetGroup(ctx context.Context, name string, assignments []string, by string) (LimitsChange, error) {
	g, err := l.seeded(ctx)
	if err != nil {
		return LimitsChange{}, err
	}
	full := mapped(assignments, func(a string) string { return admission.ScopeOfGroup(name) + "." + a })
	out, err := l.set(ctx, g, full, by)
	if err == nil && !slices.Contains(g.groups, name) {
		out.NewGroup, out.Queues = text.Printable(name), queuesOf(name)
	}
	return out, err
}

func queuesOf(group string) []string {
	return mapped(tasks.Paths, func(p tasks.Path) string { return p.Queue(group) })
}
