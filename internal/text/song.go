package text

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Song returns a recognition result in a few words: "Artist – Title", with the number of further songs in a recording;
// "" if the result has no song.
func Song(result json.RawMessage) string {
	type song struct{ Artist, Title string }
	var one song
	var chunks []struct{ Songs []song }
	if json.Unmarshal(result, &one) != nil && json.Unmarshal(result, &chunks) != nil {
		return ""
	}
	songs := []song{one}
	for _, c := range chunks {
		songs = append(songs, c.Songs...)
	}
	var different []song
	for _, s := range songs {
		if s != (song{}) && !slices.Contains(different, s) {
			different = append(different, s)
		}
	}
	if len(different) == 0 {
		return ""
	}
	first := different[0].Artist + " – " + different[0].Title
	if more := len(different) - 1; more > 0 {
		return fmt.Sprintf("%s and %s", first, Count(more, "more song", "more songs"))
	}
	return first
}
