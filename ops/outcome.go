package ops

import (
	"encoding/json"
	"fmt"

	"reprise/store"
	"reprise/tasks"
)

// stateWord is waiting, or the verdict that finished a task.
func stateWord(finished bool, verdict tasks.Verdict) string {
	if !finished {
		return "waiting"
	}
	return string(verdict)
}

// describe says in a few words what a task came to: the song, or the reason.
func describe(st store.TaskStatus) string {
	if !st.Finished || st.Verdict != tasks.Done {
		return st.Reason
	}
	type song struct{ Artist, Title string }
	var one song
	if json.Unmarshal(st.Result, &one) == nil && one != (song{}) {
		return one.Artist + " – " + one.Title
	}
	var chunks []struct{ Songs []song }
	if json.Unmarshal(st.Result, &chunks) != nil {
		return ""
	}
	var different []song
	seen := map[song]bool{}
	for _, c := range chunks {
		for _, s := range c.Songs {
			if !seen[s] {
				seen[s] = true
				different = append(different, s)
			}
		}
	}
	switch len(different) {
	case 0:
		return ""
	case 1:
		return different[0].Artist + " – " + different[0].Title
	}
	return fmt.Sprintf("%s – %s and %d more songs", different[0].Artist, different[0].Title, len(different)-1)
}
