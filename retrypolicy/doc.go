// Package retrypolicy decides what follows from one attempt: which outcome an
// answer or an error is (Classify), and what the queue, the budgets, the
// breaker and an upload's ledger do next (Policy.Decide).
//
// It is pure: no I/O, no clock, no global randomness. Time spent and jitter
// come in as arguments, and everything here is safe for concurrent use.
//
// The whole policy is one table. Arithmetic stands in delay.go, AudD's codes
// and the HTTP statuses in codes.go, the numbers in Policy.
//
// # Outcomes
//
//	outcome             when                                                                         recognition  upload   wait          counted  billed  units     breaker   latch      also
//	match               a song was found; code 51 with a song                                        done         done     –             –        –       kept      success   settled
//	no_match            no song was found; code 51 with a null result                                done         done     –             –        –       kept      success   settled
//	uploaded            the upload was accepted                                                      done         done     –             –        –       kept      success   settled
//	not_released        code 907 (to an upload: unknown)                                             done         archive  –             –        –       kept      success   rejected
//	throttled           HTTP 429, code 611                                                           snooze       snooze   pushback      –        –       refunded  excluded  released   Retry-After shuts source+path
//	unavailable_unsent  DNS, dial, TLS or proxy failure                                              retry        retry    backoff       yes      –       refunded  failure   released
//	unavailable         HTTP 5xx, 408, code 100                                                      retry        hold     backoff       yes      yes     kept      failure   uncertain  Retry-After shuts source+path
//	ambiguous           sent, but no readable answer                                                 retry        hold     backoff       yes      yes     kept      failure   uncertain
//	invalid_audio       code 300, 400, 500, 501 (file)                                               archive      archive  –             –        –       kept      success   rejected   final
//	invalid_request     code 50, 51, 601–602, 700–702, 906, 1000, HTTP 400/413/414/415, bad payload  archive      archive  –             –        –       by code   success   rejected   final
//	input_unreachable   code 600; then invalid_request                                               retry        retry    1, 5, 15 min  yes      –       kept      success   released
//	input_gone          code 501 (URL), 600 with deleted or expired                                  archive      archive  –             –        –       kept      excluded  rejected   final
//	input_missing       file or spool object not there; 3 in a row                                   retry        retry    backoff       yes      –       refunded  excluded  released
//	input_changed       content is not what was enqueued                                             archive      archive  –             –        –       refunded  excluded  released
//	link_expired        a signed URL past its expiry                                                 archive      archive  –             –        –       by code   none      released
//	not_found           HTTP 404, 3xx                                                                archive      archive  –             –        –       refunded  excluded  released   5 in a row halt
//	authentication      code 900, 901, 903, HTTP 401, 403 in JSON                                    archive      archive  –             –        –       refunded  account   released   3 in a row halt, another source first, alert
//	quota               code 902                                                                     archive      archive  quota_full    –        –       refunded  account   released   Retry-After shuts source+path, halts path, another source first, alert
//	subscription        code 904, 905                                                                archive      archive  –             –        –       refunded  account   released   halts path, another source first, alert
//	blocked             code 19, 20, 31337, any other HTTP 403                                       archive      archive  –             –        –       refunded  account   released   halts source, another source first, alert
//	newer_payload       type or version of a newer build                                             snooze       snooze   1 min         –        –       refunded  none      untouched
//	interrupted         stopped before anything was sent                                             snooze       snooze   1 s           –        –       refunded  excluded  released
//	refused             a gate said no                                                               snooze       snooze   the gate's    –        –       refunded  none      untouched
//	store_down          no safe place to settle or admit                                             snooze       snooze   5 s doubling  –        –       refunded  none      released
//	crash               panic, process death; unsent: not billed, upload retried                     retry        hold     at once       yes      yes     kept      excluded  uncertain
//	expired             the task's own time is used up                                               archive      archive  –             –        –       refunded  none      untouched
//	unknown             any other code, other HTTP 4xx                                               archive      archive  –             –        –       by code   excluded  rejected   alert
//
// recognition is also the verdict of enterprise. counted charges max_attempts,
// billed charges max_possibly_billed. latch is what an upload's ledger does
// with the latch of this attempt, if it made one. Archives without "final" can
// be replayed.
//
// # Choices the table alone does not show
//
//   - An AudD code wins over the HTTP status, also a code nobody knows.
//   - 501 is input_gone when the input is a URL, else invalid_audio.
//   - "expired" in AudD's message about a signed URL is link_expired: a fresh
//     signature makes it work, so it must not become a tombstone.
//   - 600 is retried after 1, 5 and 15 min, counted; the fourth in a row is
//     archived as invalid_request, final.
//   - A code 902 under quota_full "wait" (the default) is a snooze: the halt
//     closes the path, so the task is looked at again and then waits at the
//     gate. With "fail_fast" it is archived like the other account outcomes.
//   - 611 shuts its source and path for the hour as well, because every other
//     task would meet the same daily limit.
//   - A Retry-After of a 5xx is honoured like that of a 429.
//   - Waits of throttled answers count as the task's own time, so that the
//     give-up time also ends a task that is throttled for ever.
//   - An error nobody can name is ambiguous: not knowing must cost patience,
//     not money. An unnamed error of the BeforeBody hook is store_down.
package retrypolicy
