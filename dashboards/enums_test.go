package dashboards

import "reprise/tasks"

// enums maps each label with a closed set to its values.
func enums() map[string][]string {
	out := map[string][]string{
		"state": {"pending", "active", "scheduled", "retry", "archived", "completed", "aggregating"},
		"basis": {"measured", "estimated", "unavailable"},
	}
	for _, p := range tasks.Paths {
		out["path"] = append(out["path"], string(p))
	}
	for _, o := range tasks.Outcomes {
		out["outcome"] = append(out["outcome"], string(o))
	}
	for _, v := range tasks.Verdicts {
		out["verdict"] = append(out["verdict"], string(v))
	}
	return out
}
