package audd

import "encoding/json"

// Song is one recognised song. Every field may be empty. A match in the account's own catalog has only Timecode and
// AudioID.
type Song struct {
	Artist      string `json:"artist,omitempty"`
	Title       string `json:"title,omitempty"`
	Album       string `json:"album,omitempty"`
	ReleaseDate string `json:"release_date,omitempty"` // YYYY-MM-DD
	Label       string `json:"label,omitempty"`
	Timecode    string `json:"timecode,omitempty"` // MM:SS, where in the song the audio starts
	SongLink    string `json:"song_link,omitempty"`
	ISRC        string `json:"isrc,omitempty"`     // Startup plan and up
	UPC         string `json:"upc,omitempty"`      // Startup plan and up
	AudioID     *int64 `json:"audio_id,omitempty"` // slot in the account's own catalog; nil for public music
	// Extra has all other fields: the providers' data (apple_music, spotify, deezer, musicbrainz), unknown fields, and
	// any field above whose type is unexpected.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
}

// decodeSong reads a song from members and deletes the members that it has read.
func decodeSong(members map[string]json.RawMessage) Song {
	var s Song
	for name, into := range map[string]*string{
		"artist": &s.Artist, "title": &s.Title, "album": &s.Album, "release_date": &s.ReleaseDate, "label": &s.Label,
		"timecode": &s.Timecode, "song_link": &s.SongLink, "isrc": &s.ISRC, "upc": &s.UPC,
	} {
		text, ok := scalar(members[name])
		if ok {
			*into = text
		}
		if ok || isNull(members[name]) {
			delete(members, name)
		}
	}
	id, ok := integer(members["audio_id"])
	if ok {
		s.AudioID = &id
	}
	if ok || isNull(members["audio_id"]) {
		delete(members, "audio_id")
	}
	if len(members) > 0 {
		s.Extra = members
	}
	return s
}
