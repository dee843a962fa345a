package main

import (
	"encoding/json"
	"fmt"
)

// title is the song of a result in one phrase, or how many songs a long
// recording has; "" when there is none.
func title(result json.RawMessage) string {
	var song struct {
		Artist, Title string
	}
	if json.Unmarshal(result, &song) == nil && song.Title != "" {
		return song.Artist + " – " + song.Title
	}
	var chunks []struct {
		Songs []json.RawMessage `json:"songs"`
	}
	if json.Unmarshal(result, &chunks) != nil {
		return ""
	}
	n := 0
	for _, c := range chunks {
		if len(c.Songs) > 0 {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("songs in %d pieces of 12 s", n)
}
