// Package httptool declares an HTTP API as a tool: how a request is made of the
// arguments, what the answer's status proves, and how the far side is asked
// whether it happened.
//
//	api, err := httptool.NewClient("https://api.payments.example/v1", httptool.Header("Authorization", "Bearer …"))
//	refund, err := httptool.New[Refund, Refunded](api, httptool.Spec{
//		Name: "refund", Description: "Refund an order.",
//		Contract: settle.Contract{Class: settle.Keyed, KeyWindow: 24 * time.Hour},
//		Request:  httptool.Request{Method: "POST", Path: "/refunds"},
//		Lookup: &httptool.Lookup{
//			Request: httptool.Request{Path: "/refunds", Query: map[string]string{"key": "{settle_key}"}},
//			List:    "refunds",
//		},
//	})
//	ex, err := settle.New(ledger, settle.WithTools(refund))
//
// # What is known of a request that failed
//
//	no connection, no TLS, an address that isn't allowed   not sent
//	a connection, and no byte of the request written       not sent
//	any byte written, and no answer                        unknown
//	an answer                                              what its status proves: [MeaningOf], [Spec.Meanings]
//	a success that can't be read                           unknown
//
// A request is written at most once for an attempt. net/http sends some again by
// itself, those with an Idempotency-Key among them; this client doesn't let it
// (scenario S16).
//
// # Where requests go
//
// To the base URL's origin and nowhere else: arguments are escaped where they
// stand, and redirects are followed only for what changes nothing and on the same
// origin. Addresses that aren't public are refused at the connect, after the name
// was resolved; see [AllowAddresses]. No proxy is taken from the environment.
package httptool
