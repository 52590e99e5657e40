// Package settlemcp puts a [settle.Executor] before the tools of MCP servers, with
// github.com/modelcontextprotocol/go-sdk: on the server, where it protects every
// client, or on the client, before servers of others.
//
// On a server it guards the tools that are there and adds the executor's own:
//
//	guard, err := settlemcp.New(ex, settlemcp.Options{Tenant: "acme"})
//	server.AddReceivingMiddleware(guard.Receiving)
//	err = guard.Offer(server)
//
// On a client, a server's tools become tools of an executor ([Remote.Import]), for
// an agent's loop over any framework; or a middleware guards each call that the
// client's sessions make ([Remote.Sending]):
//
//	remote := settlemcp.Remote{Name: "github", Tools: …}
//	tools, err := remote.Import(ctx, session)
//	client.AddSendingMiddleware(settlemcp.SendTask)
//
// The task crosses the wire in _meta, the principal never does: a server learns it
// from its authentication.
//
// What a call comes to is an ordinary result, with the outcome in its text, its
// structured content and its _meta. A protocol error is a mistake of the host on
// the other side, such as a call without a task; nothing was done then.
package settlemcp
