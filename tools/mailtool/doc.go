// Package mailtool is a tool that sends mail through an SMTP relay. A relay takes
// the same mail twice, so its class is Unsafe: it is never repeated on a guess.
//
//	send, err := mailtool.New(
//		mailtool.Relay{Address: "smtp.example.org:587", Username: "agent", Password: password},
//		mailtool.Config{From: "Support <support@example.org>", Contract: settle.Contract{NoLookup: true}},
//	)
//	ex, err := settle.New(ledger, settle.WithTools(send))
//
// How far the dialogue got tells what is known ([Phase], RFC 5321):
//
//	up to the end of the text, without an answer   not sent: a message without its end is none
//	a 4xx, and a 5xx that refuses the session      not sent: the same call may be made again
//	a 5xx to sender, recipient, DATA or the end    rejected
//	the end is sent, and nobody answers            unknown
//	a 2xx to the end                               sent
//
// Sent says that the relay took the mail. Whether it is delivered is not part of
// the outcome.
//
// The Message-ID is made of the operation's key, so that a mail whose answer was
// lost can be found again: [Config.Find].
package mailtool
