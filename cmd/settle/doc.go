// Command settle is the operator's command line: it lists and settles what the
// machine can't know (R39-R45), and keeps and checks a ledger.
//
//	settle --ledger sqlite:settle.db queue list
//	settle queue show 0199c2b1-…
//	settle queue decide 0199c2b1-… fail --version 7 --reason "asked the bank: no transfer"
//
// It works on any ledger, without the code of any tool: what people need to
// know of a tool, its workers have declared to the ledger.
//
// # Environment
//
//	SETTLE_LEDGER            the ledger, where --ledger isn't given: sqlite:PATH or postgres://…
//	SETTLE_SCHEMA            the PostgreSQL schema, where --schema isn't given ("settle")
//	SETTLE_OPERATOR          who the operator is; the administrator of the host sets it (R41)
//	SETTLE_OPERATOR_TENANTS  the tenants that the operator may see, comma-separated; all if unset
//	SETTLE_KEYS              the codec's keys: ID:BASE64,ID:BASE64…, the current one first (R56)
//	NO_COLOR                 no bold text on a terminal
//
// Whoever can set these variables and read the ledger can be any operator:
// give people a wrapper, or a host, on which they can't.
//
// # Output
//
// On a terminal, tables fit its width and long text is wrapped. Into a pipe or a
// file goes plain text: one line a row, cells parted by tabs, nothing shortened,
// times in RFC 3339. With --json it is one JSON document, and an error is one on
// standard error. All times are UTC.
//
// # Exit codes
//
//	0  done
//	1  failed: the ledger can't be reached, there is no such operation, it was
//	   interrupted, or verify or doctor have found something
//	2  usage: a flag, an argument or a variable is wrong or missing
//	3  stale version, or a conflict: somebody else was faster; look again
//	4  a second person is needed: a decision waits for its confirmation
//	5  refused by a rule: the moment hasn't passed, a success is attached, …
package main
