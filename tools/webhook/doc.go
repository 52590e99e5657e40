// Package webhook sends the outbox's events by HTTP, and receives them.
//
// An event travels as a CloudEvent 1.0 in structured JSON, signed as Standard
// Webhooks say, so that receivers in any language have libraries for both. The
// sending half is a [settle.Sink]:
//
//	sink, err := webhook.New(webhook.Config{
//		URL:     "https://warehouse.example/events",
//		Source:  "https://desk.example/agents",
//		Secrets: []string{secret}, // whsec_…
//	})
//	ex, err := settle.New(ledger, settle.WithTools(…), settle.WithOutbox(sink))
//	go ex.Run(ctx)
//
// The receiving half is [Handler], or [Verifier.Receive] in a handler of one's own.
// Events come at least once (R54), in order for each operation: a receiver tells
// the ones that it has by their id, in its own transaction, with tools/inbox.
//
// # Attributes
//
//	id               the event's own, the same on every delivery; also the webhook-id
//	source           Config.Source
//	type             settle.settled and the other types of package settle, or the handler's own
//	subject          the reference of the operation
//	time             the ledger's instant of the change
//	datacontenttype  application/json; left out, as data is, where the data was erased
//	settletenant     the operation's tenant
//	settlesubject    the principal that it acts for
//	settletask       its task
//	settlegoal       its goal
//
// The last four are extension attributes, and left out where they are empty.
//
// # Answers
//
//	2xx                  taken
//	410                  given up: the receiver is gone for good
//	413, 415, 422        given up: this body won't be taken however often it comes
//	429, 503             comes again, not before Retry-After (a day at most)
//	any other, redirects comes again
//	no answer            comes again
//
// What was given up waits for an operator, and its operation's later events behind
// it. So 400, 401, 403, 404 and 405 aren't on that list: they are what receivers
// answer while their deployment, their route or their secret is wrong, which
// mends without losing an event. After about a day the relay gives those up too.
package webhook
