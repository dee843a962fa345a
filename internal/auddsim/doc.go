// Package auddsim simulates AudD's HTTP API: recognition, enterprise scans and catalog uploads with their answers, codes,
// limits, latency and faults, and a bill of what AudD would have charged. It exists so that a pipeline can be tested, and
// shown to pay for nothing twice, without an account. In Go tests:
//
//	sim := auddsim.Start(t, auddsim.Config{Tokens: []string{"token-a"}, Limits: auddsim.Limits{Rate: 50, Burst: 5}})
//	sim.Rule(auddsim.Rule{Name: "*flaky*", Times: 2, Status: 503})
//	… run something against sim.URL and sim.EnterpriseURL …
//	bill := sim.Bill()
//
// As a process: go run ./cmd/auddsim --addr 127.0.0.1:8077 --rate 50 --burst 5 --rules rules.json
//
// # Paths
//
//	/             recognize   form fields api_token, file | url | audio (base64), return
//	/enterprise/  enterprise  and skip, every, limit, skip_first_seconds, accurate_offsets
//	/upload/      upload      and audio_id
//	/getStreams/  streams     token check, an empty list, never charged or limited
//	anything else             code 1000 (getCallbackUrl: code 19)
//
// Fields may come as multipart form, URL-encoded form or query, in any order. Audio is hashed while it arrives and never
// kept, so a request of any size costs the same memory. Nothing is downloaded: the content of a URL is its text.
//
// # Answers
//
// All depends on the SHA-256 of the content: a coin with Config.MatchShare says whether it matches, and the song is made
// from the hash. Content in the token's own catalog is answered with its audio_id (Config.IndexDelay after the upload).
// An enterprise recording's length is a rule's duration, else what a WAV header says, else its size by
// Config.BytesPerSecond; a URL's is Config.URLDuration.
//
// # Order of decisions
//
// Concurrency limit and token bucket; rules that act early; the body; token (901 missing, 900 unknown or revoked, 904 path
// denied) unless the matching rule stands for an edge in front of AudD (it has a status or a reset); other rules; input
// (700 no audio, 701 no audio_id, 300 empty, 400 above 10 MiB at recognize); quota (902); charge; latency; answer.
// A request refused by a limit is still read to its end, so that its connection can be used again.
// The place in the concurrency limit is given back, and the bill written, before the last byte of the answer is sent.
//
// # What is charged
//
// recognize and upload cost 1 unit, enterprise 1 per 12 s scanned: n = ceil((length − skip_first_seconds)/12), at least 1,
// of each skip+every chunks the first every, at most limit. Charged is a request whose body arrived whole, with a good token, once
// the work begins (before the latency: whoever leaves then has paid). That is: success, matching or not; the codes 51, 100, 300, 400, 500
// and 907; HTTP 2xx, 408 and 5xx of rules; answers that are lost or spoilt. Not charged: account codes, other codes, 429 and other
// HTTP 3xx and 4xx, refusals, bodies that did not arrive whole. Rule.Billed overrides it.
//
// An upload takes effect (catalog) when it is charged or answered with success, and its audio is good.
//
// # Rules in JSON
//
// Any subset; all criteria must hold, the first rule that matches and whose count allows it wins. Patterns know * and ?.
// A criterion over form fields (name, url, token, fields, audio_id) of a rule that acts early sees only fields before the file.
//
//	{
//	  "id": "twice-503",
//	  "path": "recognize", "method": "POST", "name": "*flaky*", "hash": "9f86d0", "url": "https://*/x.mp3", "token": "t",
//	  "headers": {"X-Test": "a*"}, "fields": {"market": "us"}, "audio_id": 146,
//	  "skip": 0, "times": 2, "per": "rule|name|content", "probability": 0.1,
//	  "code": 900, "message": "…", "message_bytes": "base64, may be no UTF-8",
//	  "result": "match|null|absent", "songs": [{"artist": "…", "title": "…", "timecode": "00:41"}], "raw_result": {…},
//	  "status": 503, "body": "…", "body_bytes": "base64", "answer_headers": {"Retry-After": "3"}, "early": false,
//	  "fault": "…", "after": 65536, "eof": false,
//	  "latency": "2s", "over": "5s", "duration": "1h",
//	  "billed": true
//	}
//
// code 51 with result match, null or absent is the deprecation warning; code 19 or 31337 with songs is a denial that looks like a song.
// status and code together are AudD's error in that HTTP status; a status alone is an HTML page unless body says otherwise.
// early answers (413, 429) before the audio is read.
//
// Faults: reset_before_body, reset_within_body (after "after" bytes; 0: half), reset_after_body, reset_before_answer ("eof": FIN instead of
// RST), slow_answer (takes "over"), truncated (half the JSON in a whole answer), cut_answer (connection ends in the middle), gzip,
// body_text, body_empty, body_array, body_no_status.
//
// # Administration
//
// JSON, never charged, limited or logged. A mistake is answered with HTTP 400 and {"error": …}; unknown fields are mistakes.
//
//	GET    /_sim/bill                 units and requests in sum, by token, path, outcome, content and upload slot; 429s; highest concurrency;
//	                                  ?lines=0 leaves content and slots out
//	GET    /_sim/requests             ?path= hash= name= outcome= audio_id= after=SEQ limit=N: the log, running requests with "active"
//	GET    /_sim/catalog              upload slots with every write
//	GET    /_sim/rules                rules with how often they matched and acted
//	POST   /_sim/rules                a rule or a list: added at the end, or in the place of the same id
//	PUT    /_sim/rules                a list: instead of all
//	DELETE /_sim/rules                ?id=…: that one; without: all
//	GET    /_sim/limits               ?path=
//	POST   /_sim/limits               {"path": "recognize", "rate": 50, "burst": 5, "concurrency": 20, "latency": "200ms", "jitter": 0.2,
//	                                  "retry_after": "3s", "code": 611, "status": 429}: changes the fields given; without path for all paths
//	POST   /_sim/tokens               {"token": "t", "code": 900, "quota": 100, "deny": ["upload"]}: adds or changes a token; code 0 makes it good
//	POST   /_sim/hold                 {"stage": "before_body|within_body|after_body|before_answer", "path": …, "name": …, "hash": …, "url": …,
//	                                  "token": …, "audio_id": …, "after": BYTES, "times": N}: keeps matching requests there; answers the id
//	GET    /_sim/held                 {"count": N, "held": [...]}
//	POST   /_sim/release              ?id=…: ends that hold; without: all
//	POST   /_sim/reset                forgets bill, log, catalog and highest concurrency; rules, holds, tokens and limits stay
//
// Tokens stand in the bill and the catalog in plain and in the log masked: use invented ones.
package auddsim
