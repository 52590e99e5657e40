package settlemcp

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/exact"
	"github.com/settle-go/settle/tools/internal/mcpwire"
)

// ResultError is a result that its tool marked as an error. What it proves, the
// contract's Classify may say; otherwise the outcome is unknown (R27).
type ResultError struct{ Result *mcp.CallToolResult }

// Error is the result's text.
func (e *ResultError) Error() string {
	var said []string
	for _, c := range e.Result.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			said = append(said, t.Text)
		}
	}
	if len(said) == 0 {
		return "the tool reported an error"
	}
	return strings.Join(said, "\n")
}

// Unwrap is the error that a handler on this server returned, if one did: the SDK
// keeps it, so that [settle.NotSent] and the others reach the executor.
func (e *ResultError) Unwrap() error { return e.Result.GetError() }

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
	var own struct {
		StructuredContent json.RawMessage `json:"structuredContent"`
	}
	err = c.CallToolResult.UnmarshalJSON(whole)
	if err = errors.Join(err, json.Unmarshal(whole, &own)); err == nil && len(own.StructuredContent) > 0 {
		c.StructuredContent, err = exact.Value(own.StructuredContent) // the SDK rounds
	}
	return err
}

// judge says what the end of a call proves. An error of JSON-RPC itself is looked
// for where the SDK puts one, not deep inside a handler's own.
func judge(result mcp.Result, err error, read bool) (carried, error) {
	if err != nil {
		wire, _ := err.(*jsonrpc.Error) //nolint:errorlint // see above
		return carried{}, meaning(err, wire)
	}
	r, _ := result.(*mcp.CallToolResult)
	switch {
	case r == nil:
		return carried{}, nil
	case r.NeedsInput() || r.InputRequests != nil:
		return carried{}, settle.Interrupted(&inputRequired{r})
	case r.IsError && !read:
		return carried{}, &ResultError{r}
	}
	return carried{r}, nil
}

// meaning marks an error with what its JSON-RPC code proves: a request that was
// refused before it reached a tool, or one that waits for its user.
func meaning(err error, wire *jsonrpc.Error) error {
	if wire == nil {
		return err
	}
	switch wire.Code {
	case mcp.CodeURLElicitationRequired:
		return settle.Interrupted(err)
	case jsonrpc.CodeInvalidParams, jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidRequest, jsonrpc.CodeParseError:
		return settle.Rejected(err)
	}
	return err
}

// wireError finds the JSON-RPC error that a server answered with.
func wireError(err error) *jsonrpc.Error {
	var wire *jsonrpc.Error
	errors.As(err, &wire)
	return wire
}

// answer is an outcome as a result of its own.
func answer(out settle.Outcome, modern bool) *mcp.CallToolResult {
	r := finished(modern)
	r.Meta = mcpwire.OutcomeMeta(out)
	r.Content = []mcp.Content{&mcp.TextContent{Text: out.ForModel()}}
	r.StructuredContent = mcpwire.AnswerOf(out)
	r.IsError = mcpwire.IsError(out)
	return r
}

// replay is a recorded result with one block more, that says that nothing was
// done for this call (R48).
func replay(recorded *mcp.CallToolResult, out settle.Outcome, modern bool) *mcp.CallToolResult {
	out.Result = nil // the blocks say it
	r := finished(modern)
	r.Meta = mcpwire.OutcomeMeta(out)
	for name, v := range recorded.Meta {
		if name != mcpwire.OutcomeKey {
			r.Meta[name] = v
		}
	}
	r.Content = slices.Insert(slices.Clone(recorded.Content), 0, mcp.Content(&mcp.TextContent{Text: out.ForModel()}))
	r.StructuredContent = recorded.StructuredContent
	return r
}

// finished is an empty result. From 2026-07-28 on it has to say that it is a
// final one, for which the SDK has no setter.
func finished(modern bool) *mcp.CallToolResult {
	r := new(mcp.CallToolResult)
	if modern {
		_ = json.Unmarshal([]byte(`{"content":[],"resultType":"complete"}`), r) // a constant
	}
	return r
}
