package ops

import (
	"cmp"
	"slices"
	"strings"

	"reprise/admission"
	"reprise/internal/text"
	"reprise/tasks"
)

// pathNames are the paths as words.
func pathNames() []string {
	return mapped(tasks.Paths, func(p tasks.Path) string { return string(p) })
}

// target is a source and path; empty stands for all.
type target struct {
	source string
	path   tasks.Path
}

func targetOf(st admission.SourceState) target { return target{st.Source, st.Path} }

func (t target) String() string { return cmp.Or(t.source, "*") + "/" + cmp.Or(string(t.path), "*") }

func (t target) matches(s admission.SourceState) bool {
	return (t.source == "" || t.source == s.Source) && (t.path == "" || t.path == s.Path)
}

func anyMatches(list []target, s admission.SourceState) bool {
	return slices.ContainsFunc(list, func(t target) bool { return t.matches(s) })
}

// parseTargets reads SOURCE/PATH, with * for all.
func parseTargets(args, sources []string) ([]target, error) {
	var out []target
	for _, arg := range args {
		source, path, ok := strings.Cut(arg, "/")
		if !ok || source == "" || path == "" {
			return nil, invalid("%s: expected SOURCE/PATH such as main/recognize, with * for all", text.Printable(arg))
		}
		t := target{source, tasks.Path(path)}
		if source == "*" {
			t.source = ""
		}
		if path == "*" {
			t.path = ""
		}
		if err := t.check(sources); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// check refuses sources and paths that do not exist.
func (t target) check(sources []string) error {
	if t.source != "" && !slices.Contains(sources, t.source) {
		return invalid("no source %s%s (sources are %s)", text.Printable(t.source), text.DidYouMean(t.source, sources), strings.Join(sources, ", "))
	}
	if t.path == "" {
		return nil
	}
	if _, err := tasks.ParsePath(string(t.path)); err != nil {
		return invalid("%w%s", err, text.DidYouMean(string(t.path), pathNames()))
	}
	return nil
}
