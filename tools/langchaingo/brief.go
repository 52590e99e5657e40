package settlelangchaingo

import (
	"context"
	"errors"
	"maps"

	"github.com/tmc/langchaingo/callbacks"
	"github.com/tmc/langchaingo/chains"

	"github.com/settle-go/settle"
)

// Chain returns a chain, such as an agents.Executor, that is told what its task
// has done before. Where the task has a record already, after a restart or after
// a run that ended with an error, it stands in front of the run's "input": what
// was done, what is open and what not to repeat (R60). The chain's memory keeps
// the input without it.
func Chain(x *settle.Executor, inner chains.Chain) chains.Chain { return briefed{inner, x} }

type briefed struct {
	chains.Chain
	executor *settle.Executor
}

// inputKey is what langchaingo's agents call the question.
const inputKey = "input"

var errNoInput = errors.New(`settlelangchaingo: expected the run's "input" to be a string: the brief stands in front of it; nothing was done`)

func (c briefed) Call(ctx context.Context, inputs map[string]any, options ...chains.ChainCallOption) (map[string]any, error) {
	brief, err := c.executor.Brief(ctx)
	if err != nil {
		return nil, err
	}
	if brief == "" {
		return c.Chain.Call(ctx, inputs, options...)
	}
	question, ok := inputs[inputKey].(string)
	if !ok {
		return nil, errNoInput
	}
	inputs = maps.Clone(inputs)
	inputs[inputKey] = brief + "\n" + question
	return c.Chain.Call(ctx, inputs, options...)
}

// GetCallbackHandler keeps the inner chain's callbacks.
func (c briefed) GetCallbackHandler() callbacks.Handler { //nolint:ireturn // the framework's interface
	if h, ok := c.Chain.(callbacks.HandlerHaver); ok {
		return h.GetCallbackHandler()
	}
	return nil
}
