// Package audd calls the AudD music recognition API: exactly one HTTP request
// a call, streamed, with an error that says how far the call got.
//
// It decides nothing. It never retries, never follows a redirect and never
// caches; whether a failure is worth another call is for package retrypolicy.
//
// # The protocol
//
// Sources: [OpenAPI] is AudD's OpenAPI description 1.4.4 (testdata/openapi.yaml),
// [bodies] the answers published with it (testdata/*.json), [docs] docs.audd.io,
// [SDKs] AudD's official SDKs and command-line tool.
//
//   - recognize is POST https://api.audd.io/, upload POST …/upload/, getStreams
//     POST …/getStreams/, enterprise POST https://enterprise.audd.io/ [OpenAPI; SDKs
//     for the enterprise path, which OpenAPI gives as /enterprise/].
//   - Parameters are form fields, api_token among them; multipart/form-data is the
//     documented encoding, and the one used here for URLs too [OpenAPI]. The token
//     could also stand in the query: never done here.
//   - AudD's own errors come as HTTP 200 with status "error" and error.error_code;
//     any other HTTP status is a gateway's [OpenAPI, SDKs]. Error codes 400 and 500
//     are not HTTP 400 and 500. Codes and numbers may come as strings [SDKs].
//   - Errors echo the request, as request_params or, from enterprise,
//     requested_params, with the audio's URL in full [bodies]. The echo is dropped.
//   - No match is status "success" with result null; an upload's success has a
//     null result as well [OpenAPI]. A missing result is taken for null.
//   - Code 51 (deprecated parameter) may come with a result and then is a success
//     with a warning [SDKs], here also if that result is null.
//   - Codes 19, 20 and 31337 may come with a "song" that is a notice [OpenAPI]: it
//     is never returned, Error.Branded tells.
//   - Enterprise answers in chunks of 12 s. A chunk's offset is MM:SS [OpenAPI],
//     HH:MM:SS, SS or a bare number [SDKs]; start_offset and end_offset are
//     milliseconds within the chunk, there only with accurate_offsets [OpenAPI, SDKs],
//     which is sent as true unless told otherwise. Chunks without songs may be
//     listed or left out (no source says which); listed ones are kept.
//   - Cancelling a call does not stop AudD from finishing and billing it [SDKs].
//     There is no idempotency key, and nothing to ask about a lost call [docs].
//   - Retry-After is not documented by AudD; it is read wherever it appears.
//
// # Phases
//
// A call is unsent while no byte of its body has left: DNS, dial, TLS and proxy
// failures, a failed hook, a cancelled start. From the first body byte on (the
// token is in the body, so there is no harmless part) it is sent, until a
// complete answer makes it answered; an answer that breaks off leaves it sent.
// Three things decide: the body's first read, which runs BeforeBody; whether
// that read handed out anything; and, on connections of this package's own
// transport, the count of bytes written to the socket, which proves a call
// unsent that met a kept-alive connection the server had closed. In doubt it is sent.
//
// HTTP/1.1 is pinned, GetBody is nil and no Idempotency-Key header is set:
// with those net/http never sends a request a second time.
//
// # Bounds
//
// Answers up to 4 MiB (enterprise 64 MiB) are read, after decompression. Audio
// is streamed: a call holds its form fields and net/http's copy buffer, whatever
// the size of the audio. An Error's message is at most 300 bytes.
package audd
