// Package settlelangchaingo puts a [settle.Executor] before the tools of
// github.com/tmc/langchaingo.
//
//	tools, err := settlelangchaingo.Tools(ex, nil)                                          // the executor runs these
//	guarded, err := settlelangchaingo.Guard(ex, settlelangchaingo.Guarded{Tool: search})    // these were there before
//	agent := agents.NewOpenAIFunctionsAgent(llm, append(tools, guarded...))
//	answer, err := chains.Run(ctx, settlelangchaingo.Chain(ex, agents.NewExecutor(agent)), question)
//
// The framework has no hook over all tools and gives them no call ids, so each
// tool is decorated. What a call comes to is always its result, in the words of
// [settle.Outcome.ForModel]: an error of a tool ends the framework's executor
// and loses the steps before it. An error is the host's mistake, or the control
// flow of a tool ([settle.Interrupted]).
//
// The context names principal and task: [settle.WithPrincipal], [settle.WithTask].
package settlelangchaingo
