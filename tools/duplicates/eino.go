package main

import (
	"context"
	"errors"
	"maps"
	"sync"

	einoopenai "github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/scripted"
	settleeino "github.com/settle-go/settle/tools/eino"
)

func eino() []situation {
	const module = "eino v0.9.13"
	return []situation{
		{module, "a tool beside it fails, and the turn is run again", effects{"pay": 1}, einoSiblingError},
		{module, "the graph is cancelled while the tool runs, and resumed", effects{"pay": 1}, einoCancel},
		{module, "one approval is delivered twice", effects{"pay": 1}, einoSameApproval},
		{module, "a turn whose calls have no ids is interrupted and resumed", effects{"note": 1, "pay": 1}, einoEmptyIDs},
	}
}

type einoArgs struct {
	Order int `json:"order"`
}

func einoTool(name string, run func(context.Context) (string, error)) (tool.BaseTool, error) {
	return utils.InferTool(name, "", func(ctx context.Context, _ einoArgs) (string, error) { return run(ctx) })
}

// einoTools is a config with tools that act under their names, and with settle
// before them where the world has it.
func einoTools(ctx context.Context, w *world, runs map[string]func(context.Context) (string, error)) (config compose.ToolsNodeConfig, ex *settle.Executor, err error) {
	var guarded []settle.AnyTool
	for name, run := range maps.All(runs) {
		t, err := einoTool(name, run)
		if err != nil {
			return config, nil, err
		}
		config.Tools = append(config.Tools, t)
		guarded = append(guarded, settle.RawTool{Name: name, Contract: settle.Contract{Identity: []string{"order"}, NoLookup: true}})
	}
	if !w.guarded {
		return config, nil, nil
	}
	if ex, err = w.executor(ctx, settle.WithGuarded(guarded...)); err != nil {
		return config, nil, err
	}
	middleware, err := settleeino.Middleware(ctx, ex, config)
	config.ToolCallMiddlewares = []compose.ToolMiddleware{middleware}
	return config, ex, err
}

// acts is a tool that does nothing but act.
func (w *world) acts(label string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { w.act(label); return "done", nil }
}

// actsOnceAllowed asks a person first, by eino's own interrupt.
func (w *world) actsOnceAllowed(label string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if asked, _, _ := tool.GetInterruptState[any](ctx); !asked {
			return "", tool.StatefulInterrupt(ctx, "may I?", "asked")
		}
		w.act(label)
		return "done", nil
	}
}

// einoGraph is a tools node with checkpoints.
func einoGraph(ctx context.Context, config compose.ToolsNodeConfig) (compose.Runnable[*schema.Message, []*schema.Message], error) {
	node, err := compose.NewToolNode(ctx, &config)
	if err != nil {
		return nil, err
	}
	g := compose.NewGraph[*schema.Message, []*schema.Message]()
	if err := errors.Join(g.AddToolsNode("tools", node), g.AddEdge(compose.START, "tools"), g.AddEdge("tools", compose.END)); err != nil {
		return nil, err
	}
	return g.Compile(ctx, compose.WithCheckPointStore(&einoCheckpoints{kept: map[string][]byte{}}))
}

// einoTurn is a turn that calls the tools.
func einoTurn(tools ...string) *schema.Message {
	m := schema.AssistantMessage("", nil)
	for _, name := range tools {
		m.ToolCalls = append(m.ToolCalls, schema.ToolCall{ID: "call_" + name, Function: schema.FunctionCall{Name: name, Arguments: `{"order":7}`}})
	}
	return m
}

var underID = compose.WithCheckPointID("turn")

// einoSiblingError: eino's node ends with the first error, and what the tools
// beside it did is dropped.
func einoSiblingError(ctx context.Context, w *world) error {
	failed := false
	config, _, err := einoTools(ctx, w, map[string]func(context.Context) (string, error){"pay": w.acts("pay"), "lookup": func(context.Context) (string, error) {
		if !failed {
			failed = true
			return "", errors.New("connection refused")
		}
		return "found", nil
	}})
	if err != nil {
		return err
	}
	node, err := compose.NewToolNode(ctx, &config)
	if err != nil {
		return err
	}
	_, first := node.Invoke(ctx, einoTurn("pay", "lookup"))
	if !w.guarded && first == nil {
		return errors.New("the turn didn't fail")
	}
	_, err = node.Invoke(ctx, einoTurn("pay", "lookup"))
	return err
}

// einoCancel: a node that is at work when the graph is interrupted is run again
// on resume.
func einoCancel(ctx context.Context, w *world) error {
	entered, resumed := make(chan struct{}, 2), make(chan struct{})
	var runs sync.WaitGroup // eino doesn't wait for the one that it has given up
	config, _, err := einoTools(ctx, w, map[string]func(context.Context) (string, error){"pay": func(context.Context) (string, error) {
		runs.Add(1)
		defer runs.Done()
		entered <- struct{}{}
		<-resumed
		w.act("pay")
		return "paid", nil
	}})
	if err != nil {
		return err
	}
	graph, err := einoGraph(ctx, config)
	if err != nil {
		return err
	}
	cancellable, interrupt := compose.WithGraphInterrupt(ctx)
	go func() { <-entered; interrupt(compose.WithGraphInterruptTimeout(0)) }()
	if _, err := graph.Invoke(cancellable, einoTurn("pay"), underID); err == nil {
		return errors.New("the graph wasn't interrupted")
	}
	close(resumed)
	_, err = graph.Invoke(ctx, nil, underID)
	runs.Wait()
	return err
}

// einoSameApproval: a checkpoint is neither used up nor locked.
func einoSameApproval(ctx context.Context, w *world) error {
	config, _, err := einoTools(ctx, w, map[string]func(context.Context) (string, error){"pay": w.actsOnceAllowed("pay")})
	if err != nil {
		return err
	}
	graph, err := einoGraph(ctx, config)
	if err != nil {
		return err
	}
	_, err = graph.Invoke(ctx, einoTurn("pay"), underID)
	info, ok := compose.ExtractInterruptInfo(err)
	if !ok {
		return errors.Join(errors.New("the graph wasn't interrupted"), err)
	}
	for range 2 {
		if _, err := graph.Invoke(compose.Resume(ctx, info.InterruptContexts[0].ID), nil, underID); err != nil {
			return err
		}
	}
	return nil
}

// einoEmptyIDs: eino keeps the results of an interrupted turn by call id, so that
// without ids what was interrupted counts as done.
func einoEmptyIDs(ctx context.Context, w *world) error {
	server := scripted.New(
		scripted.CallTools(scripted.Use("note", `{"order":7}`).As(""), scripted.Use("pay", `{"order":7}`).As("")), scripted.Say("Done."))
	defer server.Close()
	config, ex, err := einoTools(ctx, w, map[string]func(context.Context) (string, error){"note": w.acts("note"), "pay": w.actsOnceAllowed("pay")})
	if err != nil {
		return err
	}
	runner, err := einoAgent(ctx, server, config, ex)
	if err != nil {
		return err
	}
	at, err := einoFinish(runner.Query(ctx, "Pay order 7.", adk.WithCheckPointID("run")))
	if err != nil || at == "" {
		return errors.Join(errors.New("the run wasn't interrupted"), err)
	}
	events, err := runner.ResumeWithParams(ctx, "run", &adk.ResumeParams{Targets: map[string]any{at: nil}})
	if err != nil {
		return err
	}
	_, err = einoFinish(events)
	return err
}

// einoAgent is an ADK agent, with settle's handler where there is an executor.
func einoAgent(ctx context.Context, server *scripted.Server, config compose.ToolsNodeConfig, ex *settle.Executor) (*adk.Runner, error) {
	var chat model.ToolCallingChatModel
	chat, err := einoopenai.NewChatModel(ctx, &einoopenai.ChatModelConfig{BaseURL: server.URL() + "/v1", APIKey: "none", Model: "scripted"})
	if err != nil {
		return nil, err
	}
	var handlers []adk.ChatModelAgentMiddleware
	if ex != nil {
		handlers = append(handlers, settleeino.Handler(ex))
	}
	agent, err := adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{Name: "payer", Description: "Pays.", Model: chat,
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: config}, Handlers: handlers})
	if err != nil {
		return nil, err
	}
	return adk.NewRunner(ctx, adk.RunnerConfig{Agent: agent, CheckPointStore: &einoCheckpoints{kept: map[string][]byte{}}}), nil
}

// einoFinish reads a run to its end, and says where it was interrupted.
func einoFinish(events *adk.AsyncIterator[*adk.AgentEvent]) (interrupt string, err error) {
	for event, ok := events.Next(); ok; event, ok = events.Next() {
		err = errors.Join(err, event.Err)
		if event.Action != nil && event.Action.Interrupted != nil {
			interrupt = event.Action.Interrupted.InterruptContexts[0].ID
		}
	}
	return interrupt, err
}

type einoCheckpoints struct {
	mu   sync.Mutex
	kept map[string][]byte
}

func (c *einoCheckpoints) Get(_ context.Context, id string) ([]byte, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	saved, ok := c.kept[id]
	return saved, ok, nil
}

func (c *einoCheckpoints) Set(_ context.Context, id string, saved []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept[id] = saved
	return nil
}
