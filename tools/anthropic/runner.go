package settleanthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/own"
	"github.com/settle-go/settle/tools/internal/turn"
)

// BetaTools returns the tools for the SDK's tool runner. It calls the tools of
// one turn one by one and at the same time, and gives no ids of the calls.
//
// The runner has decoded a call's input before a tool sees it, numbers to
// float64: an integer of 2^53 or more is refused, since it may be another one
// than the model sent.
//
// A mistake of the host, such as a context without a task, is the tool's error:
// nothing was done, and the runner tells the model of it.
func (t *Tools) BetaTools() []anthropic.BetaTool {
	var all []anthropic.BetaTool
	for _, d := range t.definitions() {
		all = append(all, betaTool{t, d})
	}
	return all
}

// betaTool is a tool that the runner calls through the executor.
type betaTool struct {
	tools      *Tools
	definition anthropic.ToolParam
}

func (b betaTool) Name() string        { return b.definition.Name }
func (b betaTool) Description() string { return b.definition.Description.Value }
func (b betaTool) InputSchema() anthropic.BetaToolInputSchemaParam {
	return anthropic.BetaToolInputSchemaParam(b.definition.InputSchema)
}

func (b betaTool) Execute(ctx context.Context, input json.RawMessage) ([]content, error) {
	said, err := b.tools.Run(ctx, settle.Call{Tool: b.Name(), Args: input, Rounded: true})
	if err != nil {
		return nil, err
	}
	return []content{textBlock(said[0])}, nil
}

// content is one block of a tool's result.
type content = anthropic.BetaToolResultBlockParamContentUnion

func textBlock(s string) content { return content{OfText: &anthropic.BetaTextBlockParam{Text: s}} }

// Guard returns the tools with the executor before each of their calls. The
// contract is found by a tool's name, among those of [settle.WithGuarded];
// without one the tool is Unsafe, and all of its arguments identify a call (R1).
// Arguments are checked against the tool's input schema before anything is
// claimed, with the same limit on integers as in [Tools.BetaTools].
//
// The blocks that a tool returns pass through untouched where it ran for this
// call; a replay has one block more in front, that says so. A tool's error means
// what [settle.NotSent] and [settle.Rejected] say, otherwise an unknown outcome,
// and becomes content: the runner's own form for it invites the model to try
// again.
//
// A tool with the name of one that the executor runs itself is refused.
func Guard(x *settle.Executor, tools ...anthropic.BetaTool) ([]anthropic.BetaTool, error) {
	var all []anthropic.BetaTool
	var problems []error
	seen := map[string]bool{}
	for i, tool := range tools {
		if tool == nil {
			problems = append(problems, fmt.Errorf("settleanthropic: tool %d is nil", i))
			continue
		}
		name := tool.Name()
		schema, err := json.Marshal(tool.InputSchema())
		switch {
		case name == "":
			err = errors.New("it has no name")
		case seen[name]:
			err = errors.New("its name is given twice")
		case own.Runs(x, name, func(a, b string) bool { return a == b }):
			err = own.ErrRuns
		case err != nil:
			err = fmt.Errorf("its input schema is no JSON Schema: %w", err)
		case !turn.Declared(x, name):
			err = turn.Check(schema)
		}
		if seen[name] = true; err != nil {
			problems = append(problems, fmt.Errorf("settleanthropic: tool %q: %w", name, err))
		}
		all = append(all, guardedTool{tool, x, schema})
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return all, nil
}

// guardedTool is a tool of the SDK with the executor before it.
type guardedTool struct {
	anthropic.BetaTool
	executor *settle.Executor
	schema   json.RawMessage
}

func (g guardedTool) Execute(ctx context.Context, input json.RawMessage) ([]content, error) {
	call := settle.Call{Tool: g.Name(), Args: input, Schema: g.schema, Rounded: true}
	blocks, out, err := settle.Around(ctx, g.executor, call, func(ctx context.Context) ([]content, error) {
		args, _ := settle.ArgumentsFrom(ctx)
		return g.BetaTool.Execute(ctx, args)
	})
	switch {
	case err != nil:
		return nil, err
	case out.Status != settle.StatusCompleted || len(blocks) == 0:
		return []content{textBlock(out.ForModel())}, nil
	case out.Replayed:
		out.Result = nil // the blocks say it
		return slices.Insert(blocks, 0, textBlock(out.ForModel())), nil
	}
	return blocks, nil
}

// Rewind returns a runner's history without the results of its last turn. It is
// for a runner whose NextMessage failed at the API: the next one answers that
// turn again, by replay, and the API takes only one result for a call.
//
//	message, err := runner.NextMessage(ctx)
//	if err != nil {
//		runner.Params.Messages = settleanthropic.Rewind(runner.Params.Messages)
//		message, err = runner.NextMessage(ctx)
//	}
//
// Without it the second request is refused; with it or without, no tool acts again.
func Rewind(messages []anthropic.BetaMessageParam) []anthropic.BetaMessageParam {
	turn := len(messages)
	for turn > 0 && messages[turn-1].OfAssistant == nil {
		turn--
	}
	after := slices.DeleteFunc(slices.Clone(messages[turn:]), func(m anthropic.BetaMessageParam) bool {
		return m.OfUser != nil && !slices.ContainsFunc(m.OfUser.Content, func(b anthropic.BetaContentBlockParamUnion) bool {
			return b.OfToolResult == nil
		})
	})
	return slices.Concat(messages[:turn], after)
}
