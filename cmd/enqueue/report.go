package main

import (
	"encoding/json"

	"reprise/intake"
	"reprise/tasks"
)

// report is the one object that --json prints.
type report struct {
	Batch       string                `json:"batch,omitempty"` // "" for a dry run
	Path        tasks.Path            `json:"path"`
	Group       string                `json:"group,omitempty"`
	DryRun      bool                  `json:"dry_run"`
	Interrupted bool                  `json:"interrupted"`
	Found       int                   `json:"found"`
	Statuses    map[intake.Status]int `json:"statuses"`
	Units       int64                 `json:"units"`  // at most
	Resent      int                   `json:"resent"` // uploads that are billed again
	Price       *float64              `json:"price_per_1000"`
	Cost        *float64              `json:"cost"` // null = price unknown
	Items       []reportItem          `json:"items"`
	Results     []intake.Result       `json:"results,omitempty"`
}

type reportItem struct {
	Name    string        `json:"name"`
	Status  intake.Status `json:"status"`
	Reason  string        `json:"reason,omitempty"`
	Warning string        `json:"warning,omitempty"`
	Key     string        `json:"key,omitempty"`
	// AudioID and Source are those of an upload; absent until one is assigned.
	AudioID    *int64 `json:"audio_id,omitempty"`
	Source     string `json:"source,omitempty"`
	ExternalID string `json:"external_id,omitempty"`
	// Row and Line are its place in the manifest.
	Row  int `json:"row,omitempty"`
	Line int `json:"line,omitempty"`

	Units   int64           `json:"units"`
	Seconds float64         `json:"seconds,omitempty"`
	Outcome tasks.Outcome   `json:"outcome,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

func (a *app) report(plan *intake.Plan, results []intake.Result) report {
	c := plan.Counts()
	r := report{
		Batch: plan.Batch, Path: plan.Request.Path, Group: plan.Request.Group, DryRun: a.dryRun, Found: c.Found,
		Statuses: map[intake.Status]int{}, Units: c.Units, Resent: c.Resent, Items: []reportItem{}, Results: results,
	}
	if r.DryRun {
		r.Batch = ""
	}
	for _, s := range intake.Statuses {
		r.Statuses[s] = c.ByStatus[s]
	}
	if price := a.cfg.Price; price > 0 {
		cost := a.cfg.Cost(c.Units)
		r.Price, r.Cost = &price, &cost
	}
	for _, it := range plan.Items {
		r.Items = append(r.Items, reportItem{
			Name: it.Name, Status: it.Status, Reason: it.Reason, Warning: it.Warning, Key: it.Payload.Key, Units: it.Units,
			Seconds: it.Payload.Input.Seconds, Outcome: it.Outcome, Result: it.Result,
			AudioID: it.Payload.Params.AudioID, Source: it.Payload.Params.Source, ExternalID: it.ExternalID,
			Row: it.At.Row, Line: it.At.Line,
		})
	}
	return r
}
