package settlemcp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/mcpwire"
)

// Options say who calls a server's tools, and for what.
type Options struct {
	// Tenant is the tenant of every principal, where Principal isn't given.
	Tenant string
	// Principal names the authority that a call acts for. Default: the user of
	// the request's bearer token (Extra.TokenInfo.UserID); on a transport without
	// tokens, such as stdio, the principal of the context that the session was
	// connected with. A call for which it returns an error is not made, and the
	// error isn't shown.
	Principal func(ctx context.Context, req *mcp.CallToolRequest) (settle.Principal, error)
	// Task names the task of a call. Default: the one that the client sent
	// ([TaskOf]), or that of the context that the session was connected with. For
	// clients that know nothing of tasks, give an id of your own data here: from
	// a header, or from what your users work on. A call for which it returns an
	// error is not made.
	Task func(ctx context.Context, req *mcp.CallToolRequest) (settle.Task, error)
}

// Guard stands before the tools of MCP servers. It is safe for concurrent use.
type Guard struct {
	executor *settle.Executor
	options  Options
	classes  map[string]settle.Class

	mu      sync.Mutex
	offered map[string]*mcp.Tool
	schemas map[string]toolSchema
}

// toolSchema is the schema of a tool that a server has listed, as JSON.
type toolSchema struct {
	of     *mcp.Tool
	schema json.RawMessage
}

// New makes a guard.
func New(x *settle.Executor, options Options) (*Guard, error) {
	if options.Tenant == "" && options.Principal == nil {
		return nil, errors.New("settlemcp: nothing names the principals of calls: give Options.Tenant, or Options.Principal (R6)")
	}
	return &Guard{executor: x, options: options, classes: classesOf(x),
		offered: map[string]*mcp.Tool{}, schemas: map[string]toolSchema{}}, nil
}

// classesOf are the classes of an executor's tools.
func classesOf(x *settle.Executor) map[string]settle.Class {
	classes := map[string]settle.Class{}
	for _, d := range x.Tools() {
		classes[d.Name] = d.Class
	}
	return classes
}

// TaskOf returns the task that a client sent in the call's _meta.
func TaskOf(req *mcp.CallToolRequest) (settle.Task, bool) { return mcpwire.TaskOf(req.Params.Meta) }

// scope is the context of a call with its principal and task. An error is for the
// client's host.
func (g *Guard) scope(ctx context.Context, req *mcp.CallToolRequest) (context.Context, error) {
	principal, err := g.principal(ctx, req)
	if err != nil {
		return nil, refusal(settle.ErrNoPrincipal)
	}
	task, err := g.task(ctx, req)
	if err != nil {
		return nil, refusal(settle.ErrNoTask)
	}
	return settle.WithTask(settle.WithPrincipal(ctx, principal), task), nil
}

func (g *Guard) principal(ctx context.Context, req *mcp.CallToolRequest) (settle.Principal, error) {
	if g.options.Principal != nil {
		return g.options.Principal(ctx, req)
	}
	if req.Extra != nil && req.Extra.TokenInfo != nil {
		if req.Extra.TokenInfo.UserID == "" {
			return settle.Principal{}, settle.ErrNoPrincipal
		}
		return settle.Principal{Tenant: g.options.Tenant, Subject: req.Extra.TokenInfo.UserID}, nil
	}
	if p, ok := settle.PrincipalFrom(ctx); ok {
		return p, nil
	}
	return settle.Principal{}, settle.ErrNoPrincipal
}

func (g *Guard) task(ctx context.Context, req *mcp.CallToolRequest) (settle.Task, error) {
	if g.options.Task != nil {
		return g.options.Task(ctx, req)
	}
	if t, ok := TaskOf(req); ok {
		return t, nil
	}
	if t, ok := settle.TaskFrom(ctx); ok {
		return t, nil
	}
	return settle.Task{}, settle.ErrNoTask
}

// refusal is a mistake of the host's, as the client is told of it: nothing was done.
func refusal(err error) error {
	var name *settle.NameError
	switch {
	case errors.Is(err, settle.ErrNoPrincipal):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: mcpwire.NoPrincipal}
	case errors.Is(err, settle.ErrNoTask):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: mcpwire.NoTask}
	case errors.As(err, &name):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "nothing was done: " + name.Error()}
	case errors.Is(err, settle.ErrShutdown):
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "nothing was done: the server is shutting down"}
	}
	return err
}
