package main

import (
	"encoding/json"
	"fmt"

	"reprise/intake"
	"reprise/tasks"
)

// report is what --json prints: one object.
type report struct {
	Batch       string          `json:"batch,omitempty"` // "" for a dry run
	Path        tasks.Path      `json:"path"`
	Group       string          `json:"group,omitempty"`
	DryRun      bool            `json:"dry_run"`
	Interrupted bool            `json:"interrupted"`
	Found       int             `json:"found"`
	Verdicts    map[string]int  `json:"verdicts"`
	Units       int64           `json:"units"`  // at most
	Resent      int             `json:"resent"` // uploads that are billed again
	Price       *float64        `json:"price_per_1000"`
	Cost        *float64        `json:"cost"` // null = price unknown
	Items       []reportItem    `json:"items"`
	Results     []intake.Result `json:"results,omitempty"`
}

type reportItem struct {
	Name    string        `json:"name"`
	Verdict intake.Status `json:"verdict"`
	Reason  string        `json:"reason,omitempty"`
	Warning string        `json:"warning,omitempty"`
	Key     string        `json:"key,omitempty"`
	// AudioID and Source are those of an upload; absent until one is allotted.
	AudioID    *int64 `json:"audio_id,omitempty"`
	Source     string `json:"source,omitempty"`
	ExternalID string `json:"external_id,omitempty"`
	// Row and Line are those in the manifest.
	Row  int `json:"row,omitempty"`
	Line int `json:"line,omitempty"`

	Units   int64           `json:"units"`
	Seconds float64         `json:"seconds,omitempty"`
	Outcome tasks.Outcome   `json:"outcome,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

func (p *printer) report(plan *intake.Plan, rows []intake.Result) report {
	c := plan.Counts()
	r := report{
		Batch: plan.Batch, Path: plan.Request.Path, Group: plan.Request.Group, DryRun: p.app.dryRun, Found: c.Found,
		Verdicts: map[string]int{}, Units: c.Units, Resent: c.Resent, Items: []reportItem{}, Results: rows,
	}
	if r.DryRun {
		r.Batch = ""
	}
	for _, v := range intake.Statuses {
		r.Verdicts[string(v)] = c.ByStatus[v]
	}
	if price := p.cfg.Price; price > 0 {
		total := cost(c.Units, price)
		r.Price, r.Cost = &price, &total
	}
	for _, it := range plan.Items {
		r.Items = append(r.Items, reportItem{
			Name: it.Name, Verdict: it.Status, Reason: it.Reason, Warning: it.Warning, Key: it.Payload.Key, Units: it.Units,
			Seconds: it.Payload.Input.Seconds, Outcome: it.Outcome, Result: it.Result,
			AudioID: it.Payload.Params.AudioID, Source: it.Payload.Params.Source, ExternalID: it.ExternalID,
			Row: it.At.Row, Line: it.At.Line,
		})
	}
	return r
}

// describe says in a few words what a result holds.
func describe(r intake.Result) string {
	if r.Verdict != tasks.Done {
		return r.Reason
	}
	var song struct{ Artist, Title string }
	if json.Unmarshal(r.Result, &song) == nil && song.Artist+song.Title != "" {
		return song.Artist + " – " + song.Title
	}
	var chunks []struct {
		Songs []struct{ Artist, Title string }
	}
	if json.Unmarshal(r.Result, &chunks) == nil && len(chunks) > 0 {
		seen := map[string]bool{}
		first := ""
		for _, c := range chunks {
			for _, s := range c.Songs {
				name := s.Artist + " – " + s.Title
				if first == "" {
					first = name
				}
				seen[name] = true
			}
		}
		switch len(seen) {
		case 0:
			return ""
		case 1:
			return first
		}
		return fmt.Sprintf("%s and %d more songs", first, len(seen)-1)
	}
	return ""
}
