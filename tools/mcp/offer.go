package settlemcp

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/mcpwire"
	"github.com/settle-go/settle/tools/internal/own"
)

// Offer adds the executor's own tools to a server: those that are named, or all
// that have a schema. One that the server had under the name is replaced. Name
// them where the executor also has typed contracts of [settle.WithGuarded], which
// somebody else runs.
//
// Annotations say what the contract does: a Read tool is read-only, an Idempotent
// one idempotent. An answer's structured content is {status, operation, replayed,
// resource, result, message}.
//
// The tools work without [Guard.Receiving], which lets them pass.
func (g *Guard) Offer(server *mcp.Server, names ...string) error {
	found, missing := own.Tools(g.executor, names)
	if len(missing) > 0 {
		return fmt.Errorf("settlemcp: tool %q can't be offered: the executor has none of this name with a schema; register it with settle.WithTools", missing[0])
	}
	for _, d := range found {
		server.AddTool(g.offer(d), g.execute)
	}
	return nil
}

// offer is the tool of a declaration: the same one for every server, since a host
// may make one for each session.
func (g *Guard) offer(d settle.Declaration) *mcp.Tool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if tool, ok := g.offered[d.Name]; ok {
		return tool
	}
	readOnly, idempotent := mcpwire.HintsOf(d.Class)
	tool := &mcp.Tool{Name: d.Name, Description: d.Description, InputSchema: d.Schema,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: readOnly, IdempotentHint: idempotent}}
	g.offered[d.Name] = tool
	return tool
}

// offers says whether the tool is one of the executor's own.
func (g *Guard) offers(tool *mcp.Tool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return tool != nil && g.offered[tool.Name] == tool
}

// execute is the handler of an offered tool.
func (g *Guard) execute(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	ctx, err := g.scope(ctx, req)
	if err != nil {
		return nil, err
	}
	out, err := g.executor.Execute(ctx, settle.Call{Tool: req.Params.Name, Args: req.Params.Arguments})
	if err != nil {
		return nil, refusal(err)
	}
	return answer(out, speaksComplete(req.Session)), nil
}
