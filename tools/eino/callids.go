package settleeino

import (
	"context"
	"crypto/rand"
	"slices"

	"github.com/cloudwego/eino/components"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"
)

// WithCallIDs returns the model with an id for each tool call of a turn that has
// none, or the one of a call before it. eino keeps the results of an interrupted
// turn by call id: two calls without one get a single result on resume, and the
// one that was interrupted never runs.
//
// It changes nothing for a model whose ids are in order, and has no part in what
// settle takes for the same call.
func WithCallIDs(m model.ToolCallingChatModel) model.ToolCallingChatModel {
	return identifiedCaller{identified{m}, m}
}

// identified is a model whose tool calls have ids.
type identified struct{ model.BaseChatModel }

func (m identified) Generate(ctx context.Context, input []*schema.Message, options ...model.Option) (*schema.Message, error) {
	message, err := m.BaseChatModel.Generate(ctx, input, options...)
	if err != nil {
		return nil, err
	}
	return newCallIDs().fill(message), nil
}

func (m identified) Stream(ctx context.Context, input []*schema.Message, options ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	chunks, err := m.BaseChatModel.Stream(ctx, input, options...)
	if err != nil {
		return nil, err
	}
	ids := newCallIDs()
	return schema.StreamReaderWithConvert(chunks, func(chunk *schema.Message) (*schema.Message, error) { return ids.fill(chunk), nil }), nil
}

// IsCallbacksEnabled keeps eino from calling the callbacks of the model twice.
func (m identified) IsCallbacksEnabled() bool { return components.IsCallbacksEnabled(m.BaseChatModel) }

// GetType keeps the model's name in callbacks.
func (m identified) GetType() string {
	name, _ := components.GetType(m.BaseChatModel)
	return name
}

// identifiedCaller is an identified model that takes tools.
type identifiedCaller struct {
	identified
	caller model.ToolCallingChatModel
}

func (m identifiedCaller) WithTools(tools []*schema.ToolInfo) (model.ToolCallingChatModel, error) {
	bound, err := m.caller.WithTools(tools)
	if err != nil {
		return nil, err
	}
	return WithCallIDs(bound), nil
}

// callIDs are the ids of one turn: those taken, and those given to the calls of
// a stream, by the index that their chunks name.
type callIDs struct {
	taken map[string]bool
	given map[int]string
}

func newCallIDs() callIDs { return callIDs{map[string]bool{}, map[int]string{}} }

// fill is the message, or the chunk of one, with an id of its own for each call.
func (c callIDs) fill(m *schema.Message) *schema.Message {
	if m == nil || len(m.ToolCalls) == 0 {
		return m
	}
	filled := *m
	filled.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range filled.ToolCalls {
		call := &filled.ToolCalls[i]
		if call.Index == nil {
			call.ID = c.unique(call.ID)
			continue
		}
		id, known := c.given[*call.Index]
		switch {
		case !known:
			id = c.unique(call.ID)
			c.given[*call.Index], call.ID = id, id
		case call.ID != "":
			call.ID = id
		}
	}
	return &filled
}

func (c callIDs) unique(id string) string {
	if id == "" || c.taken[id] {
		id = "call_" + rand.Text()
	}
	c.taken[id] = true
	return id
}
