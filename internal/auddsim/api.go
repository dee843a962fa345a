package auddsim

import (
	"cmp"
	"fmt"
	"slices"
)

// The paths of AudD's API, as rules, bills and logs name them.
const (
	PathRecognize  = "recognize"  // POST / (one unit a call)
	PathEnterprise = "enterprise" // POST /enterprise/ (one unit per 12 s scanned)
	PathUpload     = "upload"     // POST /upload/ (one unit a call)
	PathStreams    = "streams"    // POST /getStreams/ (unmetered)
	PathOther      = "other"      // everything else; code 1000
)

// metered reports whether requests of a path cost units.
func metered(path string) bool {
	return path == PathRecognize || path == PathEnterprise || path == PathUpload
}

// messages are the texts of AudD's documented codes, made up where AudD documents no text.
var messages = map[int]string{
	19:    "Internal error: access to this method is blocked for this client.",
	20:    "Please update the app: this version is no longer supported.",
	31337: "Access denied for security reasons.",
	40:    "Recognition failed: error 40.",
	50:    "Bad request.",
	51:    "A deprecated parameter was used; please see the documentation.",
	100:   "Server error.",
	300:   "Recognition failed: a problem with fingerprint creating. Keep in mind that you should send only audio files or links to audio files, and that the audio should be long enough.",
	400:   "Recognition failed: the audio file is too big. Send at most 10 MB, or use the enterprise endpoint.",
	500:   "Recognition failed: incorrect audio file.",
	501:   "Recognition failed: couldn't get audio from the link.",
	600:   "Recognition failed: couldn't download the file from the URL.",
	601:   "Recognition failed: incorrect URL.",
	602:   "Recognition failed: incorrect input.",
	610:   "The limit of streams is reached.",
	611:   "The rate limit is reached, please slow down.",
	700:   "Recognition failed: you haven't sent a file via POST or a file URL in the `url` parameter.",
	701:   "The audio_id parameter is missing or is not an integer.",
	702:   "Incorrect input parameter.",
	900:   "Recognition failed: authorization failed: the provided api_token is incorrect, invalid, or inactive.",
	901:   "Recognition failed: authorization failed: no api_token passed, or the limit without a token is reached.",
	902:   "Recognition failed: authorization failed: the limit of requests was reached.",
	903:   "Recognition failed: authorization failed: there is a problem with the api_token.",
	904:   "This method is not available to this api_token. Please check your subscription.",
	905:   "This feature is not available to this api_token. Please check your subscription.",
	906:   "Recognition failed: bad request.",
	907:   "The song is recognised, but it is not released yet.",
	1000:  "Unknown API method.",
}

func message(code int) string {
	return cmp.Or(messages[code], fmt.Sprintf("Error %d.", code))
}

// codeBilled reports whether AudD bills a request with this code, because it has processed the audio.
func codeBilled(code int) bool {
	return slices.Contains([]int{51, 100, 300, 400, 500, 907}, code)
}

// statusBilled reports whether a rule's HTTP status stands for a response that was lost after the work: 2xx, 408 and 5xx.
// Other statuses are refusals by a server in front of AudD.
func statusBilled(status int) bool {
	return status < 300 || status == 408 || status >= 500
}
