package audd

import "encoding/json"

// Song is one recognised song. Every field may be empty: a match in the account's
// own catalog has only Timecode and AudioID.
type Song struct {
	Artist      string `json:"artist,omitempty"`
	Title       string `json:"title,omitempty"`
	Album       string `json:"album,omitempty"`
	ReleaseDate string `json:"release_date,omitempty"` // YYYY-MM-DD
	Label       string `json:"label,omitempty"`
	Timecode    string `json:"timecode,omitempty"` // MM:SS, position of the audio in the song
	SongLink    string `json:"song_link,omitempty"`
	ISRC        string `json:"isrc,omitempty"`     // Startup plan and up
	UPC         string `json:"upc,omitempty"`      // Startup plan and up
	AudioID     *int64 `json:"audio_id,omitempty"` // match in the account's own catalog; nil otherwise
	// Extra holds all other fields: the providers' data (apple_music, spotify,
	// deezer, musicbrainz), unknown fields, and fields above of another type.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
}

// decodeSong reads a song and removes the fields it read from members.
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
