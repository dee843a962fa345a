// Package audd is a client of the AudD music recognition API. Each call makes exactly one HTTP request, streams the
// audio, and reports how far it got.
//
// It never retries, follows no redirect and caches nothing. Package retrypolicy decides whether to call again.
//
// # The protocol
//
// Sources: [OpenAPI] is AudD's OpenAPI description 1.4.4 (testdata/openapi.yaml), [bodies] the responses published
// with it (testdata/*.json), [docs] docs.audd.io, [SDKs] AudD's official SDKs and command-line tool.
//
//   - recognize is POST https://api.audd.io/, upload POST …/upload/, getStreams POST …/getStreams/, enterprise POST
//     https://enterprise.audd.io/ [OpenAPI; SDKs for the enterprise path, which OpenAPI gives as /enterprise/].
//   - Parameters are form fields, api_token among them. The documented encoding is multipart/form-data, also for URLs
//     [OpenAPI]. The token is never sent in the query.
//   - AudD's own errors have HTTP status 200, status "error" and error.error_code. Any other HTTP status comes from a
//     gateway [OpenAPI, SDKs]. The codes 400 and 500 are not HTTP 400 and 500. Codes and numbers may be strings [SDKs].
//   - Errors repeat the request, as request_params or, from enterprise, requested_params, with the audio's URL in full
//     [bodies]. This package drops it.
//   - No match is status "success" with result null. An upload's success has a null result as well [OpenAPI]. A
//     missing result counts as null.
//   - Code 51 (deprecated parameter) with a result is a success with a warning [SDKs], here also if the result is null.
//   - Codes 19, 20 and 31337 may contain a "song" that is a notice [OpenAPI]. It is never returned; Error.Branded
//     reports it.
//   - An enterprise result is a list of chunks of 12 s. A chunk's offset is MM:SS [OpenAPI], HH:MM:SS, SS or a bare
//     number [SDKs]. start_offset and end_offset are milliseconds within the chunk and need accurate_offsets [OpenAPI,
//     SDKs], which is true by default. No source says whether chunks without songs are listed; listed ones are kept.
//   - Cancelling a call does not stop AudD from finishing and billing it [SDKs]. AudD has no idempotency key and no way
//     to look up a lost call [docs].
//   - AudD does not document Retry-After. It is read from every error response.
//
// # Phases
//
// A call is unsent until the first byte of its body is sent: after a failure of DNS, dial, TLS or proxy, after a failed
// hook, and after a cancellation at the start. From the first body byte it is sent. A complete response makes it
// answered; after an incomplete response it is still sent.
//
// The first read of the body runs BeforeBody. The phase follows from the bytes that this read returned and, on
// connections of this package's transport, from the bytes written to the socket. The latter prove that a call is unsent
// whose kept-alive connection the server had closed. In doubt a call is sent.
//
// The client uses HTTP/1.1 only, GetBody is nil and no Idempotency-Key header is set, so net/http never sends a request
// a second time.
//
// # Bounds
//
// Responses are read up to 4 MiB (enterprise 64 MiB) after decompression. A call keeps its form fields and net/http's
// copy buffer in memory, but not the audio. The message of an Error has at most 300 bytes.
package audd
