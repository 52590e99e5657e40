package settlemcpgo

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/mcpwire"
)

// ResultError is a result that its tool marked as an error. What it proves, the
// contract's Classify may say; otherwise the outcome is unknown (R27).
type ResultError struct{ Result *mcp.CallToolResult }

// Error is the result's text.
func (e *ResultError) Error() string {
	var said []string
	for _, c := range e.Result.Content {
		if t, ok := mcp.AsTextContent(c); ok {
			said = append(said, t.Text)
		}
	}
	if len(said) == 0 {
		return "the tool reported an error"
	}
	return strings.Join(said, "\n")
}

// inputRequired carries a result that asks for more input past the executor.
type inputRequired struct{ result *mcp.CallToolResult }

func (*inputRequired) Error() string { return "the tool needs more input" }

// carried is a tool's result on its way through the executor: untouched where the
// tool ran, and what the ledger keeps of it on a replay.
type carried struct{ *mcp.CallToolResult }

func (c carried) MarshalJSON() ([]byte, error) {
	if c.CallToolResult == nil {
		return []byte("null"), nil
	}
	whole, err := c.CallToolResult.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return mcpwire.Stored(whole)
}

func (c *carried) UnmarshalJSON(stored []byte) error {
	whole, err := mcpwire.Loaded(stored)
	if err != nil {
		return err
	}
	c.CallToolResult = new(mcp.CallToolResult)
	return c.CallToolResult.UnmarshalJSON(whole)
}

// answer is an outcome as a result of its own. Its structured content is left out
// where it wouldn't fit the tool's output schema: see [Widen].
func answer(out settle.Outcome, tool mcp.Tool) *mcp.CallToolResult {
	r := mcp.NewToolResultText(out.ForModel())
	r.Meta = mcp.NewMetaFromMap(mcpwire.OutcomeMeta(out))
	r.IsError = mcpwire.IsError(out)
	if schema := outputSchema(tool); schema == nil || mcpwire.Widened(schema) {
		r.StructuredContent = mcpwire.AnswerOf(out)
	}
	return r
}

// replay is a recorded result with one block more, that says that nothing was
// done for this call (R48).
func replay(recorded *mcp.CallToolResult, out settle.Outcome) *mcp.CallToolResult {
	out.Result = nil // the blocks say it
	r := *recorded
	meta := mcpwire.OutcomeMeta(out)
	if recorded.Meta != nil {
		maps.Copy(meta, recorded.Meta.AdditionalFields)
	}
	r.Meta = mcp.NewMetaFromMap(meta)
	r.Content = slices.Insert(slices.Clone(recorded.Content), 0, mcp.Content(mcp.NewTextContent(out.ForModel())))
	return &r
}

// Widen returns the tool with an output schema that allows an answer in a
// result's place too, since servers and clients check structured content and
// throw away what doesn't fit:
//
//	s.AddTool(settlemcpgo.Widen(tool), handler)
//
// A tool without an output schema stays as it is. One whose schema points into
// itself loses it. Where a tool isn't widened, an answer is text and _meta only.
func Widen(tool mcp.Tool) mcp.Tool {
	schema := outputSchema(tool)
	if schema == nil || mcpwire.Widened(schema) {
		return tool
	}
	tool.OutputSchema, tool.RawOutputSchema = mcp.ToolOutputSchema{}, mcpwire.Widen(schema)
	return tool
}

func outputSchema(tool mcp.Tool) json.RawMessage {
	if tool.RawOutputSchema != nil || tool.OutputSchema.Type == "" {
		return tool.RawOutputSchema
	}
	schema, err := json.Marshal(tool.OutputSchema)
	if err != nil {
		return json.RawMessage("{}")
	}
	return schema
}
