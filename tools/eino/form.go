package settleeino

import (
	"slices"
	"strings"

	"github.com/cloudwego/eino/schema"

	"github.com/settle-go/settle"
)

// form is one of eino's two kinds of results, and how it says what is known.
type form[T any] struct {
	says    func(string) T
	isEmpty func(T) bool
	// beside is a recorded result behind what is known of it.
	beside func(out settle.Outcome, recorded T) T
	// whole puts the chunks of a stream together. A result that can't be is
	// recorded without a body.
	whole func(chunks []T) T
}

var text = form[string]{
	says:    func(s string) string { return s },
	isEmpty: func(s string) bool { return s == "" },
	beside:  func(out settle.Outcome, _ string) string { return out.ForModel() },
	whole:   func(chunks []string) string { return strings.Join(chunks, "") },
}

var parts = form[*schema.ToolResult]{
	says: func(s string) *schema.ToolResult {
		return &schema.ToolResult{Parts: []schema.ToolOutputPart{textPart(s)}}
	},
	isEmpty: func(r *schema.ToolResult) bool { return r == nil || len(r.Parts) == 0 },
	beside: func(out settle.Outcome, recorded *schema.ToolResult) *schema.ToolResult {
		out.Result = nil // the parts say it
		return &schema.ToolResult{Parts: slices.Insert(slices.Clone(recorded.Parts), 0, textPart(out.ForModel()))}
	},
	whole: func(chunks []*schema.ToolResult) *schema.ToolResult {
		whole, err := schema.ConcatToolResults(chunks)
		if err != nil {
			return nil
		}
		return whole
	},
}

func textPart(s string) schema.ToolOutputPart {
	return schema.ToolOutputPart{Type: schema.ToolPartTypeText, Text: s}
}

// answer is what the model is told: the tool's own result where it ran for this
// call, and with what is known beside it where it didn't (R48).
func (f form[T]) answer(result T, out settle.Outcome) T {
	switch {
	case out.Status != settle.StatusCompleted || f.isEmpty(result):
		return f.says(out.ForModel())
	case out.Replayed:
		return f.beside(out, result)
	}
	return result
}

// recorded is an outcome's result in this form, empty where it has none.
func (f form[T]) recorded(out settle.Outcome) T {
	result, err := settle.Decode[T](out)
	if err != nil {
		var none T
		return none
	}
	return result
}
