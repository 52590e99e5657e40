package settlemcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/mcpwire"
)

// SendTask is a client's sending middleware: each tools/call carries the context's
// task in its _meta, for a guarded server. The principal isn't sent.
//
//	client.AddSendingMiddleware(settlemcp.SendTask)
//
// Task ids are the host's own data: leave it out for servers that needn't know them.
func SendTask(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		params, ok := req.GetParams().(*mcp.CallToolParams)
		task, known := settle.TaskFrom(ctx)
		if !ok || !known {
			return next(ctx, method, req)
		}
		own := *params
		own.Meta = mcpwire.WithTask(params.Meta, task)
		return next(ctx, method, withParams(req, &own))
	}
}

// withParams is the request with other params; the caller's own stay as they are.
func withParams(req mcp.Request, params *mcp.CallToolParams) mcp.Request {
	session, _ := req.GetSession().(*mcp.ClientSession)
	return &mcp.ClientRequest[*mcp.CallToolParams]{Session: session, Params: params}
}

// Sending is a client's sending middleware: it guards each tools/call to the
// server. The contract is found by [Remote.ToolName], among those of
// [settle.WithGuarded] that [Remote.Import] made; without one the tool is Unsafe,
// and all of its arguments identify a call (R1). The context of the call names
// principal and task.
//
//	client.AddSendingMiddleware(remote.Sending(ex), settlemcp.SendTask)
//
// It stands before the SDK's own middleware for input that a server asks for, so
// that all legs are one operation. One client is for one server: its middleware
// doesn't see which server a session belongs to.
//
// What a call comes to is the result; an error is the host's mistake, as
// [settle.Executor.Execute] says, or the server's demand for a URL elicitation.
// Arguments that aren't JSON bytes are refused where an integer of 2^53 or more
// went through float64. They are checked against the tools that the client has
// listed, if it has.
func (r Remote) Sending(x *settle.Executor) mcp.Middleware {
	s := &sender{remote: r, executor: x, classes: classesOf(x), schemas: map[string]json.RawMessage{}}
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if params, ok := req.GetParams().(*mcp.CallToolParams); ok && ctx.Value(importedCall{}) == nil {
				return s.call(ctx, req, params, next)
			}
			result, err := next(ctx, method, req)
			if list, ok := result.(*mcp.ListToolsResult); ok && err == nil {
				s.learn(list)
			}
			return result, err
		}
	}
}

// sender guards the calls to one server.
type sender struct {
	remote   Remote
	executor *settle.Executor
	classes  map[string]settle.Class

	mu      sync.Mutex
	schemas map[string]json.RawMessage
}

// learn keeps the schemas of a list that the client has asked for.
func (s *sender) learn(list *mcp.ListToolsResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range list.Tools {
		if schema, err := json.Marshal(t.InputSchema); err == nil {
			s.schemas[t.Name] = schema
		}
	}
}

func (s *sender) schemaOf(tool string) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.schemas[tool]
}

// call guards one call of a tool.
func (s *sender) call(ctx context.Context, req mcp.Request, params *mcp.CallToolParams, next mcp.MethodHandler) (mcp.Result, error) {
	args, rounded, err := mcpwire.Arguments(params.Arguments)
	if err != nil {
		return nil, fmt.Errorf("settlemcp: the arguments are no JSON; nothing was done: %w", err)
	}
	name := s.remote.ToolName(params.Name)
	class := s.classes[name]
	call := settle.Call{Tool: name, Args: args, Rounded: rounded, Schema: s.schemaOf(params.Name)}
	result, out, err := settle.Around(ctx, s.executor, call, func(ctx context.Context) (carried, error) {
		own := *params
		own.Arguments, _ = settle.ArgumentsFrom(ctx)
		if meta := s.remote.Tools[params.Name].Key; class == settle.Keyed && meta != "" {
			if key, ok := settle.KeyFrom(ctx); ok {
				own.Meta = mcpwire.WithKey(params.Meta, meta, key)
			}
		}
		result, err := next(ctx, callTool, withParams(req, &own))
		r, _ := result.(*mcp.CallToolResult)
		return judgeRemote(r, err, class == settle.Read)
	})
	return deliver(result, out, err, false)
}

// judgeRemote says what a server's answer proves, or what the client knows itself:
// where no connection came about, nothing was sent. A server that is guarded too
// says in its result's _meta what is known; a tool that sent nothing there may be
// called again, and what may still happen there is unknown here.
func judgeRemote(result *mcp.CallToolResult, err error, read bool) (carried, error) {
	if err != nil {
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return carried{}, settle.NotSent(err)
		}
		return carried{}, meaning(err, wireError(err))
	}
	switch mcpwire.StatusOf(metaOf(result)) {
	case "", settle.StatusCompleted:
		return judge(result, nil, read)
	case settle.StatusNotDone, settle.StatusHeld, settle.StatusUnavailable:
		return carried{}, settle.NotSent(&ResultError{result})
	case settle.StatusFailed, settle.StatusDenied, settle.StatusConflict, settle.StatusInvalidArguments, settle.StatusNoSuchTool:
		return carried{}, settle.Rejected(&ResultError{result})
	}
	return carried{}, &ResultError{result}
}

func metaOf(r *mcp.CallToolResult) map[string]any {
	if r == nil {
		return nil
	}
	return r.Meta
}
