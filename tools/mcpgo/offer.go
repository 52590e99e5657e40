package settlemcpgo

import (
	"context"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

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
// The tools work without [Guard.Middleware], which lets them pass.
func (g *Guard) Offer(s *server.MCPServer, names ...string) error {
	found, missing := own.Tools(g.executor, names)
	if len(missing) > 0 {
		return fmt.Errorf("settlemcpgo: tool %q can't be offered: the executor has none of this name with a schema; register it with settle.WithTools", missing[0])
	}
	for _, d := range found {
		readOnly, idempotent := mcpwire.HintsOf(d.Class)
		tool := mcp.NewToolWithRawSchema(d.Name, d.Description, d.Schema)
		tool.Annotations = mcp.ToolAnnotation{ReadOnlyHint: &readOnly, IdempotentHint: &idempotent}
		tool.Meta = g.offered
		s.AddTool(tool, g.execute)
	}
	return nil
}

// execute is the handler of an offered tool.
func (g *Guard) execute(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	ctx, err := g.scope(ctx, req)
	if err != nil {
		return nil, err
	}
	call, err := callOf(mcp.Tool{}, req)
	if err != nil {
		return nil, err
	}
	out, err := g.executor.Execute(ctx, call)
	if err != nil {
		return nil, err
	}
	return answer(out, mcp.Tool{}), nil
}
