package settlemcpgo

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/given"
	"github.com/settle-go/settle/tools/internal/mcpwire"
)

// Middleware guards each call of a tool, also as a task. The contract is found by
// the tool's name, among those of [settle.WithGuarded]; without one the tool is
// Unsafe, and all of its arguments identify a call (R1).
//
//	server.NewMCPServer("bookings", "v1", server.WithToolHandlerMiddleware(guard.Middleware))
//
// Arguments are checked against the tool's input schema before anything is
// claimed; a name that the server doesn't have never comes here. With
// server.WithInputSchemaValidation the server refuses arguments itself, before the
// ledger is asked.
//
// A result passes untouched where the tool ran for this call; a replay has one
// block more in front, that says so. A result that asks for more input is the
// tool's word that it has done nothing yet: it passes, and the next entry goes on
// with the same operation. An error means what [settle.NotSent] and
// [settle.Rejected] say; everything else is an unknown outcome, also a result
// marked isError ([ResultError]), unless the contract is Read.
//
// For handlers of server.AddTaskTool see [Guard.Task].
func (g *Guard) Middleware(next server.ToolHandlerFunc) server.ToolHandlerFunc {
	return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		tool := find(ctx, req.Params.Name)
		if tool.Meta == g.offered {
			return next(ctx, req) // its handler asks the executor
		}
		if runsAsTask(tool, req) {
			ctx = context.WithoutCancel(ctx)
		}
		return g.call(ctx, tool, req, next)
	}
}

// runsAsTask says whether the server runs a call in the background. Over HTTP its
// context ends then with the request that created the task, before anything has
// begun, so that its end says nothing of who waits for the result.
func runsAsTask(tool mcp.Tool, req mcp.CallToolRequest) bool {
	return req.Params.Task != nil && tool.Execution != nil &&
		(tool.Execution.TaskSupport == mcp.TaskSupportOptional || tool.Execution.TaskSupport == mcp.TaskSupportRequired)
}

// Task guards the handler of a task tool:
//
//	s.AddTaskTool(tool, guard.Task(tool, handler))
//
// The handler's context ends neither with the request that created the task, as it
// does over HTTP without the guard, nor with a tasks/cancel, which can't be told
// from that: what it does goes on to the contract's Timeout and is recorded (R24).
// The same holds for tools that run as tasks through [Guard.Middleware].
func (g *Guard) Task(tool mcp.Tool, handler server.TaskToolHandlerFunc) server.TaskToolHandlerFunc {
	return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CreateTaskResult, error) {
		result, err := g.call(context.WithoutCancel(ctx), tool, req, func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			r, err := handler(ctx, req)
			if err != nil || r == nil {
				return nil, err
			}
			return &mcp.CallToolResult{Result: r.Result, Content: r.Content, StructuredContent: r.StructuredContent, IsError: r.IsError}, nil
		})
		if err != nil || result == nil {
			return nil, err
		}
		// The server has made the task itself, and takes no more from the handler.
		r := &mcp.CreateTaskResult{Result: result.Result, Content: result.Content, StructuredContent: result.StructuredContent, IsError: result.IsError}
		if len(result.RawStructuredContent) > 0 {
			r.StructuredContent = result.RawStructuredContent
		}
		return r, nil
	}
}

// find looks the tool up as the server does: the session's own before the server's.
func find(ctx context.Context, name string) mcp.Tool {
	if session, ok := server.ClientSessionFromContext(ctx).(server.SessionWithTools); ok {
		if tool, ok := session.GetSessionTools()[name]; ok {
			return tool.Tool
		}
	}
	if s := server.ServerFromContext(ctx); s != nil {
		if tool := s.GetTool(name); tool != nil {
			return tool.Tool
		}
	}
	return mcp.Tool{}
}

// call guards one call of a tool.
func (g *Guard) call(ctx context.Context, tool mcp.Tool, req mcp.CallToolRequest, next server.ToolHandlerFunc) (*mcp.CallToolResult, error) {
	ctx, err := g.scope(ctx, req)
	if err != nil {
		return nil, err
	}
	call, err := callOf(tool, req)
	if err != nil {
		return nil, err
	}
	read := g.classes[call.Tool] == settle.Read
	result, out, err := settle.Around(ctx, g.executor, call, func(ctx context.Context) (carried, error) {
		own := req
		own.Params.Arguments = given.Members(ctx, call.Args, req.Params.Arguments)
		if len(own.Params.RawArguments) > 0 {
			own.Params.RawArguments, _ = settle.ArgumentsFrom(ctx)
		}
		r, err := next(ctx, own)
		return judge(r, err, read)
	})
	var asks *inputRequired
	switch {
	case errors.As(err, &asks):
		return asks.result, nil
	case err != nil:
		return nil, err
	case out.Status != settle.StatusCompleted || result.CallToolResult == nil:
		return answer(out, tool), nil
	case out.Replayed:
		return replay(result.CallToolResult, out), nil
	}
	return result.CallToolResult, nil
}

// callOf is the call with its exact bytes, where it came over a wire.
func callOf(tool mcp.Tool, req mcp.CallToolRequest) (settle.Call, error) {
	call := settle.Call{Tool: req.Params.Name, Args: req.Params.RawArguments, Schema: schemaOf(tool)}
	if len(call.Args) > 0 {
		return call, nil
	}
	var err error
	if call.Args, call.Rounded, err = mcpwire.Arguments(req.Params.Arguments); err != nil {
		return call, errors.New("nothing was done: the arguments are no JSON")
	}
	return call, nil
}

// schemaOf is the schema of a tool's arguments, nil where it has none.
func schemaOf(tool mcp.Tool) json.RawMessage {
	if tool.RawInputSchema != nil || tool.InputSchema.Type == "" {
		return tool.RawInputSchema
	}
	schema, err := json.Marshal(tool.InputSchema)
	if err != nil {
		return nil
	}
	return schema
}

// judge says what the end of a call proves.
func judge(r *mcp.CallToolResult, err error, read bool) (carried, error) {
	var url mcp.URLElicitationRequiredError
	var pointer *mcp.URLElicitationRequiredError
	switch {
	case errors.As(err, &url), errors.As(err, &pointer):
		return carried{}, settle.Interrupted(err)
	case err != nil:
		return carried{}, err
	case r == nil:
		return carried{}, nil
	case r.NeedsInput():
		return carried{}, settle.Interrupted(&inputRequired{r})
	case r.IsError && !read:
		return carried{}, &ResultError{r}
	}
	return carried{r}, nil
}
