package auddsim

// Samples are rules for demonstrations, keyed by the name of the file sent: *nomatch* and *unknown* give null, *match*
// a fixed song, *broken* code 500, *flaky* HTTP 503 twice per name and then the song, *long* a few songs at enterprise.
func Samples() []Rule {
	boats := Song{Artist: "The Example Band", Title: "Paper Boats", Album: "Harbour", ReleaseDate: "2019-03-08",
		Label: "Example Records", Timecode: "00:41", SongLink: "https://lis.tn/PaperBoats", Score: 92}
	harbour := Song{Artist: "The Example Band", Title: "Harbour Lights", Album: "Harbour", ReleaseDate: "2019-03-08",
		Label: "Example Records", Timecode: "01:12", SongLink: "https://lis.tn/HarbourLights", Score: 88}
	tides := Song{Artist: "Invented Orchestra", Title: "Slow Tides", Album: "Low Water", ReleaseDate: "2021-10-15",
		Label: "Invented Sound", Timecode: "00:08", SongLink: "https://lis.tn/SlowTides", Score: 81}
	return []Rule{
		{ID: "sample-flaky-503", Name: "*flaky*", Times: 2, Per: PerName, Status: 503},
		{ID: "sample-flaky", Name: "*flaky*", Result: ResultMatch, Songs: []Song{tides}},
		{ID: "sample-broken", Name: "*broken*", Code: 500},
		{ID: "sample-nomatch", Name: "*nomatch*", Result: ResultNull},
		{ID: "sample-unknown", Name: "*unknown*", Result: ResultNull},
		{ID: "sample-long", Name: "*long*", Path: PathEnterprise, Result: ResultMatch, Songs: []Song{boats, harbour, tides}},
		{ID: "sample-match", Name: "*match*", Result: ResultMatch, Songs: []Song{boats}},
	}
}
