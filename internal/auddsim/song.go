package auddsim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Song is a recognized song. Empty fields except Timecode are omitted.
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

// madeSong makes a song that depends only on its arguments.
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

// clock formats seconds as MM:SS; from one hour, or if long is set, as HH:MM:SS.
func clock(seconds int, long bool) string {
	if long || seconds >= 3600 {
		return fmt.Sprintf("%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	}
	return fmt.Sprintf("%02d:%02d", seconds/60, seconds%60)
}

func (s *Song) addProviders(providers []string) {
	block := fmt.Sprintf(`{"name":%s,"artistName":%s,"simulated":true}`, quote(s.Title), quote(s.Artist))
	for name, into := range map[string]*json.RawMessage{"apple_music": &s.AppleMusic, "spotify": &s.Spotify, "deezer": &s.Deezer} {
		if slices.Contains(providers, name) {
			*into = json.RawMessage(block)
		}
	}
	if slices.Contains(providers, "musicbrainz") {
		s.MusicBrainz = json.RawMessage(fmt.Sprintf(`[{"title":%s,"score":100,"simulated":true}]`, quote(s.Title)))
	}
}

// contentNumber is the seed of everything that depends only on the content.
func (c *call) contentNumber() uint64 {
	if c.content == nil {
		return 0
	}
	n, _ := strconv.ParseUint(c.content.hash[:16], 16, 64) // a SHA-256 in hex
	return n
}

// find returns the n-th song of the content. The call's rule decides whether there is one, else the catalog of the token,
// else the content. A content that matches is a sequence of songs, of which about one in four, never the first, is unknown.
// timecode is that of a song from the catalog.
func (c *call) find(n int, timecode string) (Song, bool) {
	switch c.ruledResult() {
	case ResultNull:
		return Song{}, false
	case ResultMatch:
		return c.song(n), true
	}
	if id, ok := c.sim.catalog.find(c.entry.token, c.content.hash, time.Now()); ok {
		return Song{Timecode: timecode, Score: 100, AudioID: &id}, true
	}
	seed := c.contentNumber()
	if coin(seed, 1) >= c.sim.cfg.MatchShare || n > 0 && coin(seed, uint64(2+n)) < 0.25 {
		return Song{}, false
	}
	return c.song(n), true
}

// recognize returns the audio_id from the catalog, a song, or null.
func (c *call) recognize() (json.RawMessage, string) {
	song, found := c.find(0, madeSong(c.contentNumber(), 0).Timecode)
	if !found {
		return json.RawMessage(`null`), "no_match"
	}
	song.Score, song.ISRC, song.UPC = 0, "", ""
	if song.Title != "" {
		song.addProviders(strings.Split(c.sub.fields["return"], ","))
	}
	return raw(song), "match"
}

// ruledResult is the result of the call's rule: match, null or absent; "" = by the content.
func (c *call) ruledResult() string {
	switch {
	case c.rule == nil:
		return ""
	case c.rule.Result == "" && c.rule.Code == 0 && len(c.rule.Songs) > 0:
		return ResultMatch
	}
	return c.rule.Result
}

// song is the n-th song of the content: of the rule, else made from the hash.
func (c *call) song(n int) Song {
	if c.rule != nil && len(c.rule.Songs) > 0 {
		return c.rule.Songs[n%len(c.rule.Songs)]
	}
	return madeSong(c.contentNumber(), n)
}
