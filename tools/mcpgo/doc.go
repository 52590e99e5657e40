// Package settlemcpgo puts a [settle.Executor] before the tools of MCP servers that
// are written with github.com/mark3labs/mcp-go.
//
//	guard := settlemcpgo.New(ex, settlemcpgo.Options{})
//	s := server.NewMCPServer("bookings", "v1", server.WithToolHandlerMiddleware(guard.Middleware))
//	s.AddTool(settlemcpgo.Widen(tool), handler)        // as before, now guarded
//	s.AddTaskTool(slow, guard.Task(slow, taskHandler)) // the library's middleware leaves these out
//	err := guard.Offer(s)                              // the executor's own tools
//
// The principal is the one that the host's authentication put into the context
// (server.WithHTTPContextFunc, [settle.WithPrincipal]). The task comes with each
// call in _meta, under "io.github.settle-go/task".
//
// What a call comes to is an ordinary result, with the outcome in its text, its
// structured content and its _meta. A protocol error is a mistake of the host on
// the other side, such as a call without a task; nothing was done then.
package settlemcpgo
