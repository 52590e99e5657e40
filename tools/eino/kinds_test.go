package settleeino_test

import (
	"context"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/schema"
)

type bookArgs struct {
	Seat int64  `json:"seat"`
	Note string `json:"note,omitempty"`
}

// book is what a tool of every kind does.
type book func(ctx context.Context, in bookArgs) (string, error)

func booked(context.Context, bookArgs) (string, error) { return "booked", nil }

// kinds are eino's four kinds of tools, made as its users make them. Each counts
// its runs as "book".
var kinds = map[string]func(w *world, run book) tool.BaseTool{
	"invokable":           invokable,
	"streamable":          streamable,
	"enhanced":            enhanced,
	"enhanced streamable": enhancedStreamable,
}

func invokable(w *world, run book) tool.BaseTool {
	return must(w)(utils.InferTool("book", "Book a seat.", func(ctx context.Context, in bookArgs) (string, error) {
		w.act("book")
		return run(ctx, in)
	}))
}

func streamable(w *world, run book) tool.BaseTool {
	return must(w)(utils.InferStreamTool("book", "Book a seat.", func(ctx context.Context, in bookArgs) (*schema.StreamReader[string], error) {
		w.act("book")
		said, err := run(ctx, in)
		if err != nil {
			return nil, err
		}
		return schema.StreamReaderFromArray([]string{said[:len(said)/2], said[len(said)/2:]}), nil
	}))
}

func enhanced(w *world, run book) tool.BaseTool {
	return must(w)(utils.InferEnhancedTool("book", "Book a seat.", func(ctx context.Context, in bookArgs) (*schema.ToolResult, error) {
		w.act("book")
		said, err := run(ctx, in)
		if err != nil {
			return nil, err
		}
		return textResult(said), nil
	}))
}

func enhancedStreamable(w *world, run book) tool.BaseTool {
	return must(w)(utils.InferEnhancedStreamTool("book", "Book a seat.", func(ctx context.Context, in bookArgs) (*schema.StreamReader[*schema.ToolResult], error) {
		w.act("book")
		said, err := run(ctx, in)
		if err != nil {
			return nil, err
		}
		return schema.StreamReaderFromArray([]*schema.ToolResult{textResult(said[:len(said)/2]), textResult(said[len(said)/2:])}), nil
	}))
}

func textResult(s string) *schema.ToolResult {
	return &schema.ToolResult{Parts: []schema.ToolOutputPart{{Type: schema.ToolPartTypeText, Text: s}}}
}

func must(w *world) func(t any, err error) tool.BaseTool {
	return func(t any, err error) tool.BaseTool {
		w.Helper()
		if err != nil {
			w.Fatal(err)
		}
		return t.(tool.BaseTool)
	}
}
