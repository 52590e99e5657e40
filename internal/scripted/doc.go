// Package scripted plays a language model over HTTP: each request takes the next
// turn of a script, which sees what the model has been told and says what it
// answers.
//
//	model := scripted.New(
//		scripted.CallTools(scripted.Use("refund", map[string]any{"order_id": "A1", "amount": "42.10"})),
//		scripted.IfResult("completed", scripted.Say("Refunded."), scripted.Say("I can't tell whether it worked.")),
//	)
//	defer model.Close()
//
// It speaks three protocols, streamed and not, so that real clients can be
// pointed at it:
//
//	POST /v1/chat/completions   OpenAI chat completions
//	POST /v1/responses          OpenAI responses
//	POST /v1/messages           Anthropic messages
//
// As the real ones do, it refuses a history in which a tool call has no result,
// or more than one. [Server.Requests] is everything that the model was told.
//
// The package imports nothing of this module.
package scripted
