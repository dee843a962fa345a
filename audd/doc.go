// Package audd is a client of the AudD music recognition API. Each call makes exactly one HTTP request, streams the
// audio, and reports how far the call got.
//
// The client never retries, follows no redirects and caches nothing. Package retrypolicy decides whether to call again.
//
// # The protocol
//
// The facts below come from these sources: [OpenAPI] is AudD's OpenAPI description 1.4.4 (testdata/openapi.yaml).
// [bodies] are the responses published with it (testdata/*.json). [docs] is docs.audd.io. [SDKs] are AudD's official
// SDKs and command-line tool.
//
//   - All calls are POST requests. recognize is https://api.audd.io/, upload is https://api.audd.io/upload/ and
//     getStreams is https://api.audd.io/getStreams/ [OpenAPI]. enterprise is https://enterprise.audd.io/ [SDKs];
//     OpenAPI gives its path as /enterprise/.
//   - Parameters, including api_token, are form fields. The documented encoding is multipart/form-data, also for URLs
//     [OpenAPI]. The token is never sent in the query.
//   - AudD's own errors have HTTP status 200, status "error" and error.error_code. Any other HTTP status comes from a
//     gateway [OpenAPI, SDKs]. The codes 400 and 500 are not HTTP 400 and 500. Codes and numbers may be strings [SDKs].
//   - Errors repeat the request, including the audio's full URL, as request_params or, from enterprise,
//     requested_params [bodies]. This package drops these fields.
//   - No match is status "success" with result null. A successful upload also has a null result [OpenAPI]. A missing
//     result is treated as null.
//   - Code 51 (deprecated parameter) with a result is a success with a warning [SDKs]. This package also accepts code 51
//     with a null result.
//   - Codes 19, 20 and 31337 may contain a "song" that is a notice [OpenAPI]. The song is never returned. Error.Branded
//     reports that there was one.
//   - An enterprise result is a list of chunks of 12 s. A chunk's offset is MM:SS [OpenAPI], HH:MM:SS, SS or a bare
//     number [SDKs]. start_offset and end_offset are milliseconds within the chunk. They need accurate_offsets [OpenAPI,
//     SDKs], which this package sets by default. It is not documented whether AudD lists chunks without songs. Listed
//     chunks are kept.
//   - AudD still finishes and bills a call that the client cancels [SDKs]. AudD has no idempotency key and no way to
//     look up a lost call [docs].
//   - AudD does not document Retry-After. This package reads it from every error response.
//
// # Phases
//
// A call is unsent until the first byte of its body is sent. A call stays unsent if DNS, dial, TLS, the proxy or the
// hook fails, or if it is cancelled before the body. It is sent from the first body byte on. It is answered after a
// complete response. After an incomplete response it is still sent.
//
// The first read of the body runs BeforeBody. The phase depends on the bytes that this read returned. On connections of
// this package's transport it also depends on the bytes written to the socket. They prove that a call is unsent if the
// server had already closed the kept-alive connection. If the phase is unclear, the call is reported as sent.
//
// The client uses HTTP/1.1 only, GetBody is nil and no Idempotency-Key header is set, so net/http never sends a request
// a second time.
//
// # Bounds
//
// A response may have 4 MiB (enterprise 64 MiB) after decompression. A call keeps its form fields and net/http's copy
// buffer in memory, but not the audio. The message of an Error has at most 300 bytes.
package audd
