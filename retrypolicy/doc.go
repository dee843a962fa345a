// Package retrypolicy decides what follows from one attempt. Classify reduces an answer or error to an outcome;
// Policy.Decide turns the outcome into what the queue, the budgets, the circuit breaker and an upload's latch
// do next.
//
// The package is pure: no I/O, no clock, no global randomness. Elapsed time and jitter are arguments.
// Everything is safe for concurrent use.
//
// The policy is one table (table.go). AudD's codes and the HTTP statuses are in codes.go, the waits in
// waits.go, the settings in policy.go.
//
// # Outcomes
//
//	outcome             when                                                                         recognition  upload   wait          counted  billed  units     breaker   latch      also
//	match               a song was found; code 51 with a song                                        done         done     –             –        –       kept      success   settled
//	no_match            no song was found; code 51 with a null result                                done         done     –             –        –       kept      success   settled
//	uploaded            the upload was accepted                                                      done         done     –             –        –       kept      success   settled
//	not_released        code 907 (to an upload: unknown)                                             done         archive  –             –        –       kept      success   rejected
//	throttled           HTTP 429, code 611                                                           snooze       snooze   pushback      –        –       refunded  excluded  released   Retry-After blocks source+path
//	unavailable_unsent  DNS, dial, TLS or proxy failure                                              retry        retry    backoff       yes      –       refunded  failure   released
//	unavailable         HTTP 5xx, 408, code 100                                                      retry        hold     backoff       yes      yes     kept      failure   uncertain  Retry-After blocks source+path
//	ambiguous           sent, but no readable response                                               retry        hold     backoff       yes      yes     kept      failure   uncertain
//	invalid_audio       code 300, 400, 500, 501 (file)                                               archive      archive  –             –        –       kept      success   rejected   final
//	invalid_request     code 50, 51, 601–602, 700–702, 906, 1000, HTTP 400/413/414/415, bad payload  archive      archive  –             –        –       by code   success   rejected   final
//	input_unreachable   code 600; then invalid_request                                               retry        retry    1, 5, 15 min  yes      –       kept      success   released
//	input_gone          code 501 (URL), 600 with deleted or expired                                  archive      archive  –             –        –       kept      excluded  rejected   final
//	input_missing       file or spool object missing 3 times in a row                                retry        retry    backoff       yes      –       refunded  excluded  released
//	input_changed       content differs from what was enqueued                                       archive      archive  –             –        –       refunded  excluded  released
//	link_expired        a signed URL past its expiry                                                 archive      archive  –             –        –       by code   none      released
//	not_found           HTTP 404, 3xx                                                                archive      archive  –             –        –       refunded  excluded  released   5 in a row halt
//	authentication      code 900, 901, 903, HTTP 401, 403 in JSON                                    archive      archive  –             –        –       refunded  account   released   3 in a row halt, another source first, alert
//	quota               code 902                                                                     archive      archive  quota_full    –        –       refunded  account   released   Retry-After blocks source+path, halts path, another source first, alert
//	subscription        code 904, 905                                                                archive      archive  –             –        –       refunded  account   released   halts path, another source first, alert
//	blocked             code 19, 20, 31337, any other HTTP 403                                       archive      archive  –             –        –       refunded  account   released   halts source, another source first, alert
//	newer_payload       type or version of a newer build                                             snooze       snooze   1 min         –        –       refunded  none      untouched
//	interrupted         stopped before anything was sent                                             snooze       snooze   1 s           –        –       refunded  excluded  released
//	refused             a gate refused the call                                                      snooze       snooze   the gate's    –        –       refunded  none      untouched
//	store_down          the admission store or the ledger does not respond                           snooze       snooze   5 s doubling  –        –       refunded  none      released
//	crash               panic, process death; unsent: not billed, upload retried                     retry        hold     at once       yes      yes     kept      excluded  uncertain
//	expired             give_up_after is used up                                                     archive      archive  –             –        –       refunded  none      untouched
//	unknown             any other code, other HTTP 4xx                                               archive      archive  –             –        –       by code   excluded  rejected   alert
//
// recognition is also the verdict of enterprise. counted charges max_attempts, billed charges
// max_possibly_billed. latch is the effect on the latch of this attempt, if it is an upload. Archives without
// "final" can be replayed.
//
// # Rules that the table does not show
//
//   - An AudD code takes precedence over the HTTP status, even an unknown code.
//   - 501 is input_gone if the input is a URL, else invalid_audio.
//   - "expired" in AudD's message about a signed URL is link_expired: a fresh
//     signature makes it work, so the task gets no tombstone.
//   - 600 is retried after 1, 5 and 15 min, counted; the fourth in a row is
//     archived as invalid_request, final.
//   - Code 902 under quota_full "wait" (the default) is a snooze: the halt pauses
//     the path, and the task waits at the gate at its next delivery. Under
//     "fail_fast" it is archived like the other account outcomes.
//   - 611 waits for at least 1 h and blocks its source and path as long, because
//     every other task meets the same daily limit.
//   - A Retry-After of a 5xx counts like that of a 429.
//   - Waits after throttled answers are the task's own time, so that the give-up
//     time ends a task that is throttled indefinitely.
//   - An unknown error is ambiguous, which retries a recognition and holds an
//     upload. An unknown error of the BeforeBody hook is store_down.
package retrypolicy
