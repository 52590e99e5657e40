// Package settleeino puts a [settle.Executor] before the tools of
// github.com/cloudwego/eino: of graphs, of the ReAct flow and of ADK agents.
//
//	middleware, err := settleeino.Middleware(ctx, ex, config) // config: a compose.ToolsNodeConfig
//	config.ToolCallMiddlewares = append(config.ToolCallMiddlewares, middleware)
//	agent, err := react.NewAgent(ctx, &react.AgentConfig{
//		ToolCallingModel: settleeino.WithCallIDs(model),
//		ToolsConfig:      config,
//		MessageRewriter:  settleeino.MessageRewriter(ex),
//	})
//
// For an ADK agent, [Handler] takes the place of the last two. Tools that the
// executor runs itself are offered to eino by [Tools].
//
// What a call comes to is the content of its result, in the words of
// [settle.Outcome.ForModel]: any error of a tool ends eino's node, its graph and
// its agent, and drops the results of the calls beside it. An interrupt passes
// through untouched, and stands in the ledger as nothing sent. An error of the
// middleware is the host's mistake, and nothing was done.
//
// The context names principal and task ([settle.WithPrincipal],
// [settle.WithTask]), or the session of an ADK run does ([SessionValues]).
package settleeino
