package audd

import (
	"encoding/json"
)

// Song is one recognised song. Every field may be empty: a hit in the
// account's own catalog has only Timecode and AudioID.
type Song struct {
	Artist      string `json:"artist,omitempty"`
	Title       string `json:"title,omitempty"`
	Album       string `json:"album,omitempty"`
	ReleaseDate string `json:"release_date,omitempty"` // YYYY-MM-DD
	Label       string `json:"label,omitempty"`
	Timecode    string `json:"timecode,omitempty"` // MM:SS, where in the song the audio lies
	SongLink    string `json:"song_link,omitempty"`
	ISRC        string `json:"isrc,omitempty"`     // Startup plan and up
	UPC         string `json:"upc,omitempty"`      // Startup plan and up
	AudioID     *int64 `json:"audio_id,omitempty"` // hit in the account's own catalog; nil otherwise
	// Extra is everything else, as AudD sent it: the providers' data
	// (apple_music, spotify, deezer, musicbrainz), fields that are new, and
	// fields above that came with another type. Nil if there is nothing.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
}

// decodeSong reads what it can of a song's members, which it consumes.
func decodeSong(members map[string]json.RawMessage) Song {
	var s Song
	for name, into := range map[string]*string{
		"artist": &s.Artist, "title": &s.Title, "album": &s.Album, "release_date": &s.ReleaseDate, "label": &s.Label,
		"timecode": &s.Timecode, "song_link": &s.SongLink, "isrc": &s.ISRC, "upc": &s.UPC,
	} {
		raw, ok := members[name]
		if !ok {
			continue
		}
		text, ok := scalar(raw)
		if ok {
			*into = text
		}
		if ok || isNull(raw) {
			delete(members, name)
		}
	}
	if raw, ok := members["audio_id"]; ok {
		id, ok := integer(raw)
		if ok {
			s.AudioID = &id
		}
		if ok || isNull(raw) {
			delete(members, "audio_id")
		}
	}
	if len(members) > 0 {
		s.Extra = members
	}
	return s
}
