package settlegenkit

import (
	"context"
	"iter"
	"slices"

	"github.com/firebase/genkit/go/ai"
)

// Prompt returns the prompt with the guard in each of its executions. Genkit
// v1.7.0 takes [ai.WithUse] where a prompt is defined and doesn't use it there:
// without this, or WithUse in each Execute, a prompt's tools run unguarded.
//
// An execution with a WithUse of its own is refused by genkit; give it the guard
// there, last, and the prompt as it is. The same holds for an [ai.DataPrompt].
func (g *Guard) Prompt(p ai.Prompt) ai.Prompt { return guardedPrompt{p, g} }

type guardedPrompt struct {
	ai.Prompt
	guard *Guard
}

// Execute implements [ai.Prompt].
func (p guardedPrompt) Execute(ctx context.Context, options ...ai.PromptExecuteOption) (*ai.ModelResponse, error) {
	return p.Prompt.Execute(ctx, append(slices.Clone(options), ai.WithUse(p.guard))...)
}

// ExecuteStream implements [ai.Prompt].
func (p guardedPrompt) ExecuteStream(ctx context.Context, options ...ai.PromptExecuteOption) iter.Seq2[*ai.ModelStreamValue, error] {
	return p.Prompt.ExecuteStream(ctx, append(slices.Clone(options), ai.WithUse(p.guard))...)
}
