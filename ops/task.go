package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/internal/text"
	"reprise/store"
	"reprise/tasks"
)

// Tasks finds tasks, lists them and explains what they wait for.
type Tasks struct{ *base }

// Task is a task in a list. A new column of `inspect tasks` begins with a field here.
type Task struct {
	store.TaskStatus
	Name       string     `json:"name"`        // of the input; a URL without its query
	State      string     `json:"state"`       // waiting, or the verdict that finished it
	WaitsFor   string     `json:"waits_for"`   // Why.Because; "" = it does not wait, or Options.Redis is nil
	Starts     *time.Time `json:"starts"`      // an estimate; null = unknown
	StartsWhen string     `json:"starts_when"` // what must happen first; "" = nothing
	FinishedAt *time.Time `json:"finished_at"` // null = it is not finished
}

// stateWord returns waiting, or the verdict that finished a task.
func stateWord(finished bool, verdict tasks.Verdict) string {
	if !finished {
		return "waiting"
	}
	return string(verdict)
}

// CheckFilter refuses a filter with an unknown word or a limit below 1.
func CheckFilter(f store.TaskFilter) error {
	for _, err := range []error{
		among("outcome", f.Outcome, tasks.Outcomes), among("verdict", f.Verdict, tasks.Verdicts), among("path", f.Path, tasks.Paths),
	} {
		if err != nil {
			return err
		}
	}
	if f.Limit < 1 {
		return invalid("limit %d: must be 1 or more", f.Limit)
	}
	if f.Queue != "" {
		if _, _, err := tasks.SplitQueue(f.Queue); err != nil {
			return invalid("queue: %w", err)
		}
	}
	return nil
}

// List returns tasks, the least recently changed first, at most filter.Limit. For the next page set AfterAt and
// AfterKey to those of the last task.
func (t *Tasks) List(ctx context.Context, filter store.TaskFilter) ([]Task, error) {
	if err := CheckFilter(filter); err != nil {
		return nil, err
	}
	found, err := t.Store.Tasks(ctx, filter)
	if err != nil {
		return nil, err
	}
	names, err := t.inputNames(ctx, found)
	if err != nil {
		return nil, err
	}
	causes, err := t.waitCauses(ctx, found)
	if err != nil {
		return nil, err
	}
	out := make([]Task, len(found))
	for i, r := range found {
		c := causes[r.Key]
		out[i] = Task{
			TaskStatus: r, Name: names[r.Key], State: stateWord(r.Finished, r.Verdict), WaitsFor: c.Because, Starts: stamp(c.Starts),
			StartsWhen: c.When, FinishedAt: stamp(r.FinishedAt),
		}
	}
	return out, nil
}

// inputNames returns the names that inputs were enqueued under, else the file or URL. URLs have no query.
func (t *Tasks) inputNames(ctx context.Context, rows []store.TaskStatus) (map[string]string, error) {
	names, err := t.Store.Names(ctx, mapped(rows, func(r store.TaskStatus) string { return r.Key }))
	if err != nil {
		return nil, fmt.Errorf("name the inputs: %w", err)
	}
	for _, r := range rows {
		if names[r.Key] == "" {
			p, _, err := t.payload(ctx, r.Key, r.Path)
			if err != nil {
				return nil, err
			}
			names[r.Key] = inputOf(p)
		} else if strings.Contains(names[r.Key], "://") {
			names[r.Key] = tasks.RedactURL(names[r.Key])
		}
	}
	return names, nil
}

// inputOf returns the location of a task's audio: its file path, or its URL without user, query and fragment.
func inputOf(p tasks.Payload) string {
	if p.Input.Kind == tasks.URLInput {
		return tasks.RedactURL(p.Input.URL)
	}
	return text.Printable(p.Input.Path)
}

// locateChunk is the most tasks that are looked up in the queues at once.
const locateChunk = 1000

// waitCauses explains the unfinished tasks as Why does, with few requests to Redis. It leaves out the place in line and
// the permit of each task.
func (t *Tasks) waitCauses(ctx context.Context, rows []store.TaskStatus) (map[string]Cause, error) {
	out := map[string]Cause{}
	waiting := slices.DeleteFunc(slices.Clone(rows), func(r store.TaskStatus) bool { return r.Finished })
	if len(waiting) == 0 || t.Redis == nil {
		return out, nil
	}
	list, err := t.newQueueEvidence(ctx)
	if err != nil {
		return nil, err
	}
	for chunk := range slices.Chunk(waiting, locateChunk) {
		found, err := list.locate(ctx, chunk)
		if err != nil {
			return nil, err
		}
		for i, r := range chunk {
			e, err := list.of(ctx, found[i].Queue)
			if err != nil {
				return nil, err
			}
			e.Key, e.LastError = r.Key, r.Reason
			e.Status = store.TaskStatus{Known: true, Queue: r.Queue, Generation: r.Generation}
			e.State, e.NextRun = found[i].State, found[i].NextRun
			out[r.Key] = Explain(e, t.times())
		}
	}
	return out, nil
}
