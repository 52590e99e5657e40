package settlemcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/mcpwire"
)

const (
	callTool  = "tools/call"
	listTools = "tools/list"
)

// Receiving is a server's receiving middleware: it guards each tools/call. The
// contract is found by the tool's name, among those of [settle.WithGuarded];
// without one the tool is Unsafe, and all of its arguments identify a call (R1).
//
//	server.AddReceivingMiddleware(guard.Receiving)
//
// Arguments are checked against the server's own list of tools before anything
// is claimed, and a name that isn't on it is refused as the SDK does. What the
// middlewares that were added before do, they do for each attempt.
//
// A result passes untouched where the tool ran for this call; a replay has one
// block more in front, that says so. A result that asks for more input is the
// tool's word that it has done nothing yet: it passes, and the client's next leg
// goes on with the same operation. An error means what [settle.NotSent] and
// [settle.Rejected] say, and one of JSON-RPC's for a bad request is a refusal;
// everything else is an unknown outcome, also a result marked isError
// ([ResultError]), unless the contract is Read.
//
// In tools/list, output schemas are widened by what a guarded tool answers in
// place of a result.
func (g *Guard) Receiving(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch req := req.(type) {
		case *mcp.CallToolRequest:
			return g.call(ctx, req, next)
		case *mcp.ListToolsRequest:
			result, err := next(ctx, method, req)
			if list, ok := result.(*mcp.ListToolsResult); ok && err == nil {
				result = g.widened(list)
			}
			return result, err
		}
		return next(ctx, method, req)
	}
}

// call guards one call of a tool.
func (g *Guard) call(ctx context.Context, req *mcp.CallToolRequest, next mcp.MethodHandler) (mcp.Result, error) {
	tool, err := g.find(ctx, req, next)
	if err != nil {
		return nil, err
	}
	if g.offers(tool) {
		return next(ctx, callTool, req) // its handler asks the executor
	}
	if ctx, err = g.scope(ctx, req); err != nil {
		return nil, err
	}
	schema, err := g.schemaOf(tool)
	if err != nil {
		return nil, err
	}
	call := settle.Call{Tool: req.Params.Name, Args: req.Params.Arguments, Schema: schema}
	read := g.classes[req.Params.Name] == settle.Read
	result, out, err := settle.Around(ctx, g.executor, call, func(ctx context.Context) (carried, error) {
		if tool == nil {
			return carried{}, settle.NotSent(errUnknownTool)
		}
		own, params := *req, *req.Params
		if len(params.Arguments) > 0 {
			params.Arguments, _ = settle.ArgumentsFrom(ctx)
		}
		own.Params = &params
		result, err := next(ctx, callTool, &own)
		return judge(result, err, read)
	})
	if tool == nil && !out.Recorded && err == nil {
		return nil, errUnknownTool
	}
	delivered, err := deliver(result, out, err, speaksComplete(req.Session))
	return delivered, refusal(err)
}

// errUnknownTool is what the SDK answers, without the name that was made up.
var errUnknownTool = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown tool"}

// find looks the tool up on the server's own list, as it is now and for this
// session. It is nil where the server doesn't have it.
func (g *Guard) find(ctx context.Context, req *mcp.CallToolRequest, next mcp.MethodHandler) (*mcp.Tool, error) {
	for params := new(mcp.ListToolsParams); ; {
		result, err := next(ctx, listTools, &mcp.ListToolsRequest{Session: req.Session, Params: params, Extra: req.Extra})
		if err != nil {
			return nil, err
		}
		list, ok := result.(*mcp.ListToolsResult)
		if !ok {
			return nil, fmt.Errorf("settlemcp: a middleware answered tools/list with a %T; nothing was done", result)
		}
		for _, t := range list.Tools {
			if t.Name == req.Params.Name {
				return t, nil
			}
		}
		if list.NextCursor == "" {
			return nil, nil
		}
		params = &mcp.ListToolsParams{Cursor: list.NextCursor}
	}
}

// noArguments is the schema of a tool that the server doesn't have: what the
// ledger has of its calls is answered, and nothing new is claimed (R18).
var noArguments = json.RawMessage(`{"type":"object","not":{}}`)

// schemaOf is the schema of a tool's arguments.
func (g *Guard) schemaOf(tool *mcp.Tool) (json.RawMessage, error) {
	if tool == nil {
		return noArguments, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if known := g.schemas[tool.Name]; known.of == tool {
		return known.schema, nil
	}
	schema, err := json.Marshal(tool.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("settlemcp: the tool's input schema is no JSON Schema; nothing was done: %w", err)
	}
	g.schemas[tool.Name] = toolSchema{tool, schema}
	return schema, nil
}

// widened is a list in which each output schema allows an answer too.
func (g *Guard) widened(list *mcp.ListToolsResult) *mcp.ListToolsResult {
	own := *list
	own.Tools = make([]*mcp.Tool, len(list.Tools))
	for i, t := range list.Tools {
		own.Tools[i] = t
		if t.OutputSchema == nil {
			continue
		}
		tool := *t
		tool.OutputSchema = nil
		if schema, err := json.Marshal(t.OutputSchema); err == nil {
			if wide := mcpwire.Widen(schema); wide != nil {
				tool.OutputSchema = wide
			}
		}
		own.Tools[i] = &tool
	}
	return &own
}

// speaksComplete says whether the client wants to be told that a result is a
// final one: from protocol version 2026-07-28 on.
func speaksComplete(session *mcp.ServerSession) bool {
	began := session.InitializeParams()
	return began == nil || began.ProtocolVersion >= "2026-07-28"
}

// deliver is what a guarded call comes to, in the SDK's form.
func deliver(result carried, out settle.Outcome, err error, modern bool) (mcp.Result, error) {
	var asks *inputRequired
	switch {
	case errors.As(err, &asks):
		return asks.result, nil
	case err != nil:
		return nil, err
	case out.Status != settle.StatusCompleted || result.CallToolResult == nil:
		return answer(out, modern), nil
	case out.Replayed:
		return replay(result.CallToolResult, out, modern), nil
	}
	return result.CallToolResult, nil
}
