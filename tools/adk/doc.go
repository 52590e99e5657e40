// Package settleadk puts a [settle.Executor] before the tools of agents and
// workflows that run on google.golang.org/adk.
//
//	guard, err := settleadk.Plugin(ex, settleadk.PrincipalFromSession(), settleadk.TaskFromState("case", "support"))
//	r, err := runner.New(runner.Config{
//		AppName: "support", Agent: agent, SessionService: sessions,
//		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{guard}},
//	})
//
// [Plugin] covers every tool of every agent that a runner runs. A workflow's
// tool nodes bypass plugins, and so do streaming tools: those are wrapped with
// [Tool]. [Tools] offers the executor's own tools to an agent.
//
// What a call comes to is always its result, as a map: the tool's own where it
// ran, otherwise "status", "operation" and "message", in the words of
// [settle.Outcome.ForModel]. It is never an error, which invites a model, and
// adk's own retry plugin, to try again.
//
// The context names principal and task ([settle.WithPrincipal], [settle.WithTask]):
// what is given to the runner reaches the tools. Where it doesn't, the options
// above take them from the session.
package settleadk
