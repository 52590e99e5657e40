package settleeino

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/settle-go/settle"
)

// Begin returns the messages that a conversation begins with, for a graph of the
// host's own. Where the task has a record already, after a restart, what was
// done, what is open and what not to repeat is told before anything that user
// and model say (R60): in a system message behind the instructions.
func Begin(ctx context.Context, x *settle.Executor, messages ...*schema.Message) ([]*schema.Message, error) {
	ctx, err := scoped(ctx)
	if err != nil {
		return nil, err
	}
	brief, err := x.Brief(ctx)
	switch {
	case err != nil:
		return nil, err
	case brief == "":
		return messages, nil
	}
	return behindInstructions(messages, schema.SystemMessage(brief)), nil
}

func behindInstructions(messages []*schema.Message, m *schema.Message) []*schema.Message {
	at := slices.IndexFunc(messages, func(m *schema.Message) bool { return m.Role != schema.System })
	if at < 0 {
		at = len(messages)
	}
	return slices.Insert(slices.Clone(messages), at, m)
}

// MessageRewriter does what [Begin] does for the ReAct flow, by itself: it is a
// react.AgentConfig.MessageRewriter. The brief comes before the first request to
// the model of a run, and of a resumed run where this process isn't the one that
// saved the checkpoint; it is in the flow's state from then on.
//
// A brief that can't be read is told as such, and tried again before the next
// request: eino's rewriters return no error.
func MessageRewriter(x *settle.Executor) func(context.Context, []*schema.Message) []*schema.Message {
	b := newBriefer(x)
	return func(ctx context.Context, messages []*schema.Message) []*schema.Message {
		briefed, err := b.rewrite(ctx, messages)
		if err != nil {
			return behindInstructions(without(messages), briefMessage(unreadable, ""))
		}
		return briefed
	}
}

const unreadable = "What was done for this task before can't be read at the moment. Don't take it that nothing was done."

// Handler does for an ADK agent what [MessageRewriter] and [WithCallIDs] do for
// the ReAct flow: it is one of adk.ChatModelAgentConfig.Handlers. The tools are
// guarded by [Middleware]. Where the brief can't be read, the run ends with the
// error.
func Handler(x *settle.Executor) adk.ChatModelAgentMiddleware {
	return &handler{briefer: newBriefer(x)}
}

type handler struct {
	adk.BaseChatModelAgentMiddleware
	briefer briefer
}

func (h *handler) BeforeModelRewriteState(ctx context.Context, state *adk.ChatModelAgentState, _ *adk.ModelContext) (context.Context, *adk.ChatModelAgentState, error) {
	briefed, err := h.briefer.rewrite(ctx, state.Messages)
	if err != nil {
		return ctx, nil, err
	}
	changed := *state
	changed.Messages = briefed
	return ctx, &changed, nil
}

func (h *handler) WrapModel(_ context.Context, m model.BaseChatModel, _ *adk.ModelContext) (model.BaseChatModel, error) {
	return identified{m}, nil
}

// briefer knows by a mark in a conversation's messages whether this process has
// told its brief. The mark is saved with a checkpoint, and isn't sent to a model.
type briefer struct {
	executor *settle.Executor
	process  string
}

func newBriefer(x *settle.Executor) briefer { return briefer{x, rand.Text()} }

// The marks: of a brief, and of another message where there was nothing to tell.
const (
	markBrief = "settle_brief"
	markBegun = "settle_begun"
)

func (b briefer) rewrite(ctx context.Context, messages []*schema.Message) ([]*schema.Message, error) {
	told := slices.ContainsFunc(messages, func(m *schema.Message) bool {
		return m.Extra[markBrief] == b.process || m.Extra[markBegun] == b.process
	})
	if told || len(messages) == 0 {
		return messages, nil
	}
	ctx, err := scoped(ctx)
	if err != nil {
		return nil, err
	}
	brief, err := b.executor.Brief(ctx)
	if err != nil {
		return nil, err
	}
	messages = without(messages)
	if brief != "" {
		return behindInstructions(messages, briefMessage(brief, b.process)), nil
	}
	if len(messages) > 0 {
		messages[0] = marked(messages[0], markBegun, b.process)
	}
	return messages, nil
}

func briefMessage(text, process string) *schema.Message {
	return marked(schema.SystemMessage(text), markBrief, process)
}

// marked is a copy: the message is the host's, and may be shared.
func marked(m *schema.Message, mark, process string) *schema.Message {
	c := *m
	c.Extra = maps.Clone(m.Extra)
	if c.Extra == nil {
		c.Extra = map[string]any{}
	}
	c.Extra[mark] = process
	return &c
}

// without are the messages without a brief of before.
func without(messages []*schema.Message) []*schema.Message {
	return slices.DeleteFunc(slices.Clone(messages), func(m *schema.Message) bool {
		_, brief := m.Extra[markBrief]
		return brief
	})
}
