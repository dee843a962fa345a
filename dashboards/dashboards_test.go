package dashboards

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// series maps every name that a query may use to its labels. A histogram has
// three names.
func series() map[string][]string {
	out := map[string][]string{}
	for _, m := range Metrics {
		labels := append([]string{"instance", "job"}, m.Labels...)
		if m.Kind == histogram {
			out[m.Name+"_bucket"] = append(labels, "le")
			out[m.Name+"_sum"], out[m.Name+"_count"] = labels, labels
			continue
		}
		out[m.Name] = labels
	}
	return out
}

var (
	quoted    = regexp.MustCompile(`"[^"]*"`)
	duration  = regexp.MustCompile(`\[[^\]]*\]|\boffset \w+|\$\w+`)
	selector  = regexp.MustCompile(`([a-z_:][\w:]*)\{([^}]*)\}`)
	grouping  = regexp.MustCompile(`\b(?:by|without|on|ignoring) \(([^)]*)\)`)
	labelName = regexp.MustCompile(`[a-zA-Z_]\w*`)
	word      = regexp.MustCompile(`[a-zA-Z_:][\w:]*(\s*\()?`)
)

// faults finds unknown metrics and labels in a query. It is not a PromQL parser: a
// query that it cannot read has a fault too.
func faults(expr string, known map[string][]string) []string {
	var found []string
	expr = duration.ReplaceAllString(quoted.ReplaceAllString(expr, `""`), "")
	var labels, named []string
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		for _, label := range labelName.FindAllString(m[2], -1) {
			if !slices.Contains(known[m[1]], label) {
				found = append(found, m[1]+" has no label "+label)
			}
		}
	}
	expr = selector.ReplaceAllString(expr, "$1")
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		labels = append(labels, labelName.FindAllString(m[1], -1)...)
	}
	expr = grouping.ReplaceAllString(expr, "")
	for _, w := range word.FindAllString(expr, -1) {
		switch {
		case strings.HasSuffix(w, "("), slices.Contains([]string{"and", "or", "unless", "sum", "max", "min", "count"}, w):
		case known[w] == nil:
			found = append(found, "no metric "+w)
		default:
			named = append(named, w)
		}
	}
	if len(named) == 0 {
		found = append(found, "uses no metric")
	}
	for _, label := range labels {
		if !slices.ContainsFunc(named, func(name string) bool { return slices.Contains(known[name], label) }) {
			found = append(found, "no metric in it has the label "+label)
		}
	}
	return found
}

func TestUnknownMetricsAndLabelsAreFound(t *testing.T) {
	t.Parallel()
	for name, expr := range map[string]string{
		"unknown metric":            `sum(rate(reprise_typo_total[5m]))`,
		"unknown label in braces":   `reprise_slots{colour="red"}`,
		"unknown label in grouping": `sum by (colour) (reprise_slots)`,
		"histogram without suffix":  `reprise_call_seconds`,
		"no metric":                 `1 + 1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NotEmpty(t, faults(expr, series()))
		})
	}
	require.Empty(t, faults(`histogram_quantile(0.9, sum by (le, path) (rate(reprise_call_seconds_bucket{path=~"$path"}[$__rate_interval])))`, series()))
}

type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Panels        []struct {
		ID                       int
		Type, Title, Description string
		GridPos                  struct{ X, Y, W, H int }
		Targets                  []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Name, Definition string }
	}
	Annotations struct{ List []struct{ Expr string } }
}

func load(t *testing.T) dashboard {
	t.Helper()
	raw, err := Files.ReadFile("reprise.json")
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(raw, &d))
	return d
}

func TestEveryPanelQueriesKnownMetrics(t *testing.T) {
	t.Parallel()
	d := load(t)
	require.Equal(t, "reprise", d.UID)
	require.Positive(t, d.SchemaVersion)
	ids := map[int]bool{}
	for _, p := range d.Panels {
		require.Falsef(t, ids[p.ID], "panel id %d is used twice", p.ID)
		ids[p.ID] = true
		require.LessOrEqualf(t, p.GridPos.X+p.GridPos.W, 24, "%s is wider than the page", p.Title)
		if p.Type == "row" {
			continue
		}
		require.NotEmptyf(t, p.Description, "%s has no description", p.Title)
		require.NotEmptyf(t, p.Targets, "%s has no query", p.Title)
		for _, target := range p.Targets {
			require.Emptyf(t, faults(target.Expr, series()), "%s: %s", p.Title, target.Expr)
		}
	}
	for _, a := range d.Annotations.List {
		require.Emptyf(t, faults(a.Expr, series()), "annotation: %s", a.Expr)
	}
}

func TestEveryMetricIsOnTheDashboard(t *testing.T) {
	t.Parallel()
	raw, err := Files.ReadFile("reprise.json")
	require.NoError(t, err)
	for _, m := range Metrics {
		require.Containsf(t, string(raw), m.Name, "no panel shows %s", m.Name)
	}
}

func TestEveryRuleQueriesKnownMetrics(t *testing.T) {
	t.Parallel()
	raw, err := Files.ReadFile("rules.yml")
	require.NoError(t, err)
	var rules struct {
		Groups []struct {
			Rules []struct {
				Record, Alert, Expr string
				Labels, Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(raw, &rules))
	known := series()
	count := 0
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			count++
			require.Emptyf(t, faults(r.Expr, known), "%s%s: %s", r.Alert, r.Record, r.Expr)
			if r.Record != "" {
				known[r.Record] = []string{"path", "outcome"}
				continue
			}
			require.NotEmptyf(t, r.Labels["severity"], "%s has no severity", r.Alert)
			require.NotEmptyf(t, r.Annotations["summary"], "%s has no summary", r.Alert)
			require.NotEmptyf(t, r.Annotations["description"], "%s has no description", r.Alert)
		}
	}
	require.Positive(t, count)
}

// Selectors name values of the closed enums; with a typo an alert never fires.
func TestSelectorsUseKnownValues(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"reprise.json", "rules.yml"} {
		raw, err := Files.ReadFile(file)
		require.NoError(t, err)
		text := strings.ReplaceAll(string(raw), `\"`, `"`)
		for label, values := range enums() {
			for _, m := range regexp.MustCompile(`\b`+label+`=~?"([^"$]+)"`).FindAllStringSubmatch(text, -1) {
				for value := range strings.SplitSeq(m[1], "|") {
					require.Containsf(t, values, value, "%s: %s=%q", file, label, value)
				}
			}
		}
	}
}
