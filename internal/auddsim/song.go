package auddsim

import (
	"encoding/json"
	"fmt"
)

// Song is a recognised song. Empty fields are left out of the answer, except that timecode is always there.
type Song struct {
	Artist      string `json:"artist,omitempty"`
	Title       string `json:"title,omitempty"`
	Album       string `json:"album,omitempty"`
	ReleaseDate string `json:"release_date,omitempty"`
	Label       string `json:"label,omitempty"`
	Timecode    string `json:"timecode"`
	SongLink    string `json:"song_link,omitempty"`
	ISRC        string `json:"isrc,omitempty"`
	UPC         string `json:"upc,omitempty"`
	Score       int    `json:"score,omitempty"` // enterprise only
	AudioID     *int64 `json:"audio_id,omitempty"`

	StartOffset *int64 `json:"start_offset,omitempty"` // ms inside the chunk, enterprise with accurate_offsets
	EndOffset   *int64 `json:"end_offset,omitempty"`

	AppleMusic  json.RawMessage `json:"apple_music,omitempty"`
	Spotify     json.RawMessage `json:"spotify,omitempty"`
	Deezer      json.RawMessage `json:"deezer,omitempty"`
	MusicBrainz json.RawMessage `json:"musicbrainz,omitempty"`
}

var (
	songFirst  = []string{"Paper", "Silver", "Quiet", "Northern", "Glass", "Amber", "Hollow", "Distant", "Velvet", "Salt", "Winter", "Copper"}
	songSecond = []string{"Boats", "Harbour", "Signals", "Gardens", "Machines", "Tides", "Lanterns", "Orchard", "Static", "Meridian", "Rooms", "Sparrows"}
	songLabels = []string{"Example Records", "Invented Sound", "Nowhere Music"}
)

// madeSong is a song that depends only on the content's number and n.
func madeSong(content uint64, n int) Song {
	x := mix(content + uint64(n)*0x9e3779b97f4a7c15)
	word := func(list []string, shift uint) string { return list[(x>>shift)%uint64(len(list))] }
	title := word(songFirst, 0) + " " + word(songSecond, 8)
	return Song{
		Artist: "The " + word(songFirst, 16) + " " + word(songSecond, 24), Title: title, Album: word(songSecond, 32),
		ReleaseDate: fmt.Sprintf("%d-%02d-%02d", 1970+x>>40%54, 1+x>>46%12, 1+x>>50%28), Label: word(songLabels, 54),
		Timecode: clock(int(x>>44%240), false), SongLink: fmt.Sprintf("https://lis.tn/sim%08x", uint32(x)),
		Score: 70 + int(x>>48%31),
	}
}

// clock writes seconds as MM:SS, or HH:MM:SS from an hour on or if long is set.
func clock(seconds int, long bool) string {
	if long || seconds >= 3600 {
		return fmt.Sprintf("%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	}
	return fmt.Sprintf("%02d:%02d", seconds/60, seconds%60)
}

// addProviders fills in what the return parameter asked for.
func (s *Song) addProviders(providers []string) {
	for _, p := range providers {
		block := json.RawMessage(fmt.Sprintf(`{"name":%s,"artistName":%s,"simulated":true}`, quote(s.Title), quote(s.Artist)))
		switch p {
		case "apple_music":
			s.AppleMusic = block
		case "spotify":
			s.Spotify = block
		case "deezer":
			s.Deezer = block
		case "musicbrainz":
			s.MusicBrainz = json.RawMessage(fmt.Sprintf(`[{"title":%s,"score":100,"simulated":true}]`, quote(s.Title)))
		}
	}
}
