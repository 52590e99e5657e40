// Package settle stands between an LLM agent and the tools it calls, and brings
// every tool call to a known outcome, or to evidence, or to a person.
//
// A timeout tells an agent only that it saw no answer. settle claims each side
// effect in a durable ledger before anything is sent, under a key that survives
// model turns, restarts and network retries; it refuses the same key with
// another meaning; it looks for evidence before it repeats anything; and it
// leaves what nobody can know to a person instead of retrying.
//
// # In short
//
// Declare a [Tool] with a [Contract], open a ledger (store/sqlite or
// store/postgres), build an [Executor] with [New], name who acts and what for
// with [WithPrincipal] and [WithTask], and pass each tool call of the model to
// [Executor.Execute] or [Executor.ExecuteAll]. Send [Outcome.ForModel] back.
// Run [Executor.Run] beside it, so that what a crash left behind is settled.
// Guard tools that a framework owns with [Around].
//
// # Situation and answer
//
// Execute returns an error only for mistakes of the host; everything else is an
// [Outcome] with a [Status]:
//
//	situation                                                  answer
//	no principal in the context                                ErrNoPrincipal
//	no task in the context                                     ErrNoTask
//	a name that is empty, too long or not in NFC               *NameError
//	after Shutdown                                             ErrShutdown
//	a contract that can't hold, when the executor is built     *ToolError from New
//	it was carried out now, or before (Replayed)               StatusCompleted
//	the far side refused for good                              StatusFailed
//	nothing was sent, or it surely had no effect               StatusNotDone
//	arguments that don't fit, and no record of the call        StatusInvalidArguments
//	the host's Authorize, or a person, says no                 StatusDenied
//	the same call with other arguments                         StatusConflict
//	something else has to be settled or told first             StatusHeld
//	an attempt is at work                                      StatusInProgress
//	it may have happened; evidence is sought                   StatusUnknown
//	a person has to allow it                                   StatusAwaitingApproval
//	a person has to find out                                   StatusManual
//	a newer write on the same resource stands                  StatusSuperseded
//	a person closed it without knowing                         StatusAbandoned
//	its record is closed or purged                             StatusExpired
//	no tool has that name                                      StatusNoSuchTool
//	the ledger can't be written: nothing was sent              StatusUnavailable
//
// A handler says what its error proves with [NotSent], [Rejected] and
// [AlreadySo]; every other error is an unknown outcome.
//
// The rules that this package keeps are numbered R1 to R60; docs/protocol.md
// has them, and comments and tests cite them.
package settle
