// Package settlegenkit puts a [settle.Executor] before the tools that
// github.com/firebase/genkit/go generates with.
//
//	guard := settlegenkit.New(ex)
//	response, err := genkit.Generate(ctx, g,
//		ai.WithPrompt("…"), ai.WithTools(refund, mail), ai.WithUse(guard))
//
// A [Guard] is a middleware. Genkit has no default for all of a registry, so it
// is given to each Generate; [Guard.Prompt] gives it to all executions of a
// prompt. [Guard.Tools] and [Guard.Define] offer the executor's own tools.
//
// What a call comes to is always its output: the tool's own where it ran,
// otherwise "status", "operation" and "message", in the words of
// [settle.Outcome.ForModel]. It is no error, since one would end Generate while
// the tools beside it are still running.
//
// The context names principal and task: [settle.WithPrincipal], [settle.WithTask].
package settlegenkit
