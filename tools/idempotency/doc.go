// Package idempotency keeps an HTTP service from doing a thing twice: the header
// Idempotency-Key, after draft-ietf-httpapi-idempotency-key-header-07, on a
// settle ledger. It has both ends.
//
// # The service
//
//	x, err := settle.New(ledger, settle.WithGuarded(
//		idempotency.Declare("POST /payments", settle.Contract{NoLookup: true})))
//	guard, err := idempotency.New(x, idempotency.Options{Caller: callerOf})
//	pay, err := guard.Protect("POST /payments", http.HandlerFunc(pay))
//	mux.Handle("POST /payments", pay)
//	mux.Handle("GET /idempotency", guard.Status())
//
// A request is an operation: its principal is the authenticated caller, its tool
// the method and route, its node the key, its arguments the target and the body.
// So the rules of settle hold for it: one run, an answer that is recorded before
// it is sent, replays that say so, other content under the key refused, and an
// outcome that nobody knows never guessed. [Guard.Protect] tells what a handler
// can rely on.
//
// # What an answer says
//
//	the handler's answer                             what is recorded              a later request with the key
//	2xx, 3xx, 4xx except 408, 425, 429               completed, with the answer    the same answer, Idempotency-Replayed: true
//	a status in Options.Free, or NothingHappened     nothing; the key stays free   runs
//	408, 425, 429, 5xx, a panic, no return in time   unknown                       409 outcome-unknown, or what a Lookup finds
//
// A Transactional route is never unknown for long: all but a final answer roll back
// what its handler wrote, and leave the key free.
//
// A refusal is an answer: 402 is recorded as 201 is, since other content under a
// key is 422 whatever became of the first. "Completed" says that the handler had
// its last word.
//
// # Situations and answers
//
// Answers of the guard's own are problem documents (RFC 9457):
//
//	no key; one that is malformed, too long, or sent twice      400 key-missing, key-malformed
//	the body was cut off, or isn't the JSON that it says        400 body-incomplete, body-unreadable
//	the body is longer than Options.MaxBody                     413 body-too-large
//	the caller isn't known; known and not allowed               401 unauthenticated, 403 denied
//	a request with the key is in flight                         409 in-progress, with Retry-After
//	its outcome isn't known, or is a person's to settle         409 outcome-unknown
//	the handler panicked in this request                        500 outcome-unknown
//	the key was used with other content                         422 key-reused
//	its record is gone after Retention, or its task is closed   410 expired
//	the ledger can't be written; a shutdown                     503 unavailable, with Retry-After
//
// The README lists them all. [HeaderStatus] holds the outcome's code on every
// answer that has an operation, [HeaderOperation] its reference.
//
// # The client
//
//	client := &http.Client{Transport: &idempotency.Transport{}}
//
// [Transport] makes the key before the first send, keeps it over retries and
// redirects, and is the one layer that retries. A client in JavaScript is in the
// README.
package idempotency
