// Package auddsim simulates AudD's HTTP API: recognition, enterprise scans and catalog uploads with their responses, codes,
// limits, latency and faults, and a bill of what AudD would have charged. It tests a pipeline without an account. In Go:
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
//	/getStreams/  streams     checks the token and returns an empty list; never charged or limited
//	others                    code 1000 (getCallbackUrl: code 19)
//
// Fields are read from a multipart form, a URL-encoded form or the query, in any order. Audio is hashed while it is received
// and not kept, so requests of all sizes need the same memory. Nothing is downloaded: the content of a URL is its text.
//
// # Responses
//
// The response depends on the SHA-256 of the content: Config.MatchShare of all contents match, with a song made from the hash.
// Content in the catalog of the token is found by its audio_id, Config.IndexDelay after the upload. The length of an
// enterprise recording is the duration of a rule, else that of the WAV header, else estimated from the size. A URL has the
// length Config.URLDuration.
//
// # Order of decisions
//
//  1. concurrency limit and token bucket; a refused request is read to its end, so that its connection can be used again
//  2. rules that act early, then the body
//  3. token: 901 missing, 900 unknown or revoked, 904 path denied; not checked if the matching rule has a status or a reset,
//     which stand for a server in front of AudD
//  4. other rules
//  5. input: 700 no audio, 701 no audio_id, 300 empty, 400 above 10 MiB at recognize
//  6. quota (902), charge, latency, response
//
// The request leaves the concurrency limit, and the bill is written, before the last byte of the response is sent.
//
// # What is charged
//
// recognize and upload cost 1 unit. enterprise costs 1 for each chunk of 12 s scanned: of ceil((length − skip_first_seconds)/12)
// chunks, at least 1, it scans the first "every" of each skip+every, and at most limit. A request is charged when its body was
// received completely, its token is valid and the work begins, which is before the latency: a client that leaves then is
// charged. Charged are success, with or without a match; the codes 51, 100, 300, 400, 500 and 907; HTTP 2xx, 408 and 5xx of
// rules; lost and damaged responses. Not charged are other codes, other HTTP statuses and refusals. Rule.Billed overrides this.
//
// An upload takes effect if its audio is valid and it was charged or answered with success.
//
// # Rules
//
// A rule changes the response to the requests that match all its criteria. The first rule that matches, and whose count
// allows it, acts. All fields are optional. Type Rule lists them with their JSON names, and the constants of type Fault the
// faults. In JSON durations are text ("2s") and bytes are base64:
//
//	{"path": "recognize", "name": "*flaky*", "times": 2, "status": 503, "answer_headers": {"Retry-After": "3"}, "latency": "2s"}
//
// code 51 with a result is the deprecation warning. code 19 or 31337 with songs is a denial that looks like a song. status
// and code together are AudD's error with that HTTP status; a status alone is an HTML page unless there is a body. A rule
// that acts early sees only the form fields before the file.
//
// # Administration
//
// JSON; never charged, limited or logged. A mistake, such as an unknown field, gets HTTP 400 and {"error": …}.
//
//	GET    /_sim/bill       sums and lines by content and upload slot; ?lines=0: only the sums
//	GET    /_sim/requests   the log with running requests; ?path= hash= name= outcome= audio_id= after=SEQ limit=N
//	GET    /_sim/catalog    upload slots with all their uploads
//	GET    /_sim/rules      rules with how often they matched (seen) and acted (used)
//	POST   /_sim/rules      a rule or a list: adds them, or replaces those with the same id
//	PUT    /_sim/rules      a list: replaces all
//	DELETE /_sim/rules      ?id=…: that one; else all
//	GET    /_sim/limits     ?path=
//	POST   /_sim/limits     {"path": "recognize", "rate": 50, "burst": 5, "concurrency": 20, "latency": "200ms", "jitter": 0.2,
//	                        "retry_after": "3s", "code": 611, "status": 429}: changes these fields; without path for all paths
//	POST   /_sim/tokens     {"token": "t", "code": 900, "quota": 100, "deny": ["upload"]}: adds or changes it; code 0: valid
//	POST   /_sim/hold       {"stage": "before_body|within_body|after_body|before_answer", "path": …, "name": …, "hash": …,
//	                        "url": …, "token": …, "audio_id": …, "after": BYTES, "times": N}: holds matching requests; returns the id
//	GET    /_sim/held       {"count": N, "held": [...]}
//	POST   /_sim/release    ?id=…: ends that hold; else all
//	POST   /_sim/reset      clears bill, log, catalog and maximum concurrency; rules, holds, tokens and limits stay
//
// Bill and catalog show tokens in plain text, the log masks them: use invented ones.
package auddsim
