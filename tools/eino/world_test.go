package settleeino_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	einoopenai "github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/internal/scripted"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
	settleeino "github.com/settle-go/settle/tools/eino"
)

// world is a model, eino's client on it, a ledger and a far side.
type world struct {
	*testing.T
	ctx    context.Context
	ledger store.Ledger
	pay    *farside.Payments
	model  *scripted.Server
	chat   model.ToolCallingChatModel // as it is: WithCallIDs and Handler are the agents' affair

	mu   sync.Mutex
	acts map[string]int
}

func newWorld(t *testing.T, turns ...scripted.Turn) *world {
	t.Helper()
	t.Parallel()
	w := &world{T: t, ledger: memory.New(), pay: farside.NewPayments(), model: scripted.New(turns...), acts: map[string]int{}}
	t.Cleanup(w.pay.Close)
	t.Cleanup(w.model.Close)
	w.ctx = as(t.Context(), "agent")
	chat, err := einoopenai.NewChatModel(w.ctx, &einoopenai.ChatModelConfig{BaseURL: w.model.URL() + "/v1", APIKey: "none", Model: "scripted"})
	if err != nil {
		t.Fatal(err)
	}
	w.chat = chat
	return w
}

func principal(subject string) settle.Principal {
	return settle.Principal{Tenant: "acme", Subject: subject}
}

var task = settle.Task{ID: "case-42", Goal: "late-parcel"}

// as is a context of the task's.
func as(ctx context.Context, subject string) context.Context {
	return settle.WithTask(settle.WithPrincipal(ctx, principal(subject)), task)
}

// act counts an effect.
func (w *world) act(label string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acts[label]++
}

// wantActs checks how often each label acted, those that aren't named never.
func (w *world) wantActs(want map[string]int) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !maps.Equal(w.acts, want) {
		w.Errorf("the tools acted %v, want %v", w.acts, want)
	}
}

// start is a process: a new executor on the ledger.
func (w *world) start(options ...settle.Option) *settle.Executor {
	w.Helper()
	options = append(options, settle.WithTools(w.refund()), settle.Volatile(), settle.WithLogger(slog.New(slog.DiscardHandler)))
	x, err := settle.New(w.ledger, options...)
	if err != nil {
		w.Fatal(err)
	}
	return x
}

type refundArgs struct {
	Order int64  `json:"order" settle:"identity"`
	Cents int64  `json:"cents"`
	Note  string `json:"note,omitempty" settle:"ignore"`
}

type refunded struct {
	ID string `json:"id" settle:"resource"`
}

// refund is Keyed, and its far side can be asked. The executor runs it.
func (w *world) refund() settle.AnyTool {
	client := farside.NewPaymentsClient(w.pay.URL())
	return settle.Tool[refundArgs, refunded]{
		Name: "refund", Description: "Refund an order.",
		Contract: settle.Contract{Class: settle.Keyed, KeyWindow: 24 * time.Hour},
		Do: func(ctx context.Context, op settle.Op, in refundArgs) (refunded, error) {
			r, err := client.Refund(ctx, op.Key(), strconv.FormatInt(in.Order, 10), strconv.FormatInt(in.Cents, 10))
			return refunded{r.ID}, err
		},
		Lookup: func(ctx context.Context, q settle.Query[refunded], _ refundArgs) (settle.Evidence, error) {
			found, err := client.FindByKey(ctx, q.Key())
			if err != nil || len(found) == 0 {
				return q.NotHappened(), err
			}
			return q.Happened(found[0].ID, refunded{found[0].ID}), nil
		},
	}
}

func (w *world) wantRefunds(want int) {
	w.Helper()
	if got := len(w.pay.Effects()); got != want {
		w.Errorf("%d refunds were made, want %d", got, want)
	}
}

// rows is what the ledger holds.
func (w *world) rows() []store.Entry {
	w.Helper()
	rows, err := w.ledger.List(w.ctx, store.Filter{Tenant: "acme"})
	if err != nil {
		w.Fatal(err)
	}
	return rows
}

func (w *world) wantRows(want int) {
	w.Helper()
	if rows := w.rows(); len(rows) != want {
		w.Errorf("the ledger has %d rows, want %d: %+v", len(rows), want, rows)
	}
}

// results are the tool results at the end of the n-th request to the model.
func (w *world) results(n int) []string {
	w.Helper()
	var all []string
	for _, m := range w.request(n).Results() {
		all = append(all, m.Text)
	}
	return all
}

func (w *world) request(n int) scripted.Request {
	w.Helper()
	requests := w.model.Requests()
	if len(requests) <= n {
		w.Fatalf("the model was asked %d times, want more than %d", len(requests), n)
	}
	return requests[n]
}

// executors are the tools that an executor runs.
func (w *world) executors(x *settle.Executor) []tool.BaseTool {
	w.Helper()
	tools, err := settleeino.Tools(x, nil)
	if err != nil {
		w.Fatal(err)
	}
	return tools
}

// guard puts the executor before the tools.
func (w *world) guard(x *settle.Executor, tools []tool.BaseTool, options ...settleeino.Option) compose.ToolsNodeConfig {
	w.Helper()
	return w.guardConfig(x, compose.ToolsNodeConfig{Tools: tools, UnknownToolsHandler: settleeino.NoSuchTool}, options...)
}

func (w *world) guardConfig(x *settle.Executor, config compose.ToolsNodeConfig, options ...settleeino.Option) compose.ToolsNodeConfig {
	w.Helper()
	middleware, err := settleeino.Middleware(w.ctx, x, config, options...)
	if err != nil {
		w.Fatal(err)
	}
	config.ToolCallMiddlewares = append(config.ToolCallMiddlewares, middleware)
	return config
}

// agent runs an agent to its end and returns what the model says last.
type agent func(w *world, x *settle.Executor, config compose.ToolsNodeConfig) (string, error)

// agents are the ways in which eino runs one. Nothing in them is settle's but
// the lines with settleeino.
var agents = map[string]agent{
	"react": reactAgent, "react streamed": reactStreamed, "adk": adkAgent(false), "adk streamed": adkAgent(true),
}

func everyAgent(t *testing.T, test func(t *testing.T, run agent)) {
	t.Helper()
	t.Parallel()
	for name, run := range agents {
		t.Run(name, func(t *testing.T) { test(t, run) })
	}
}

var question = []*schema.Message{schema.SystemMessage("You support."), schema.UserMessage("Where is my parcel?")}

func (w *world) react(x *settle.Executor, config compose.ToolsNodeConfig) *react.Agent {
	w.Helper()
	a, err := react.NewAgent(w.ctx, &react.AgentConfig{ToolCallingModel: settleeino.WithCallIDs(w.chat), ToolsConfig: config, MessageRewriter: settleeino.MessageRewriter(x)})
	if err != nil {
		w.Fatal(err)
	}
	return a
}

func reactAgent(w *world, x *settle.Executor, config compose.ToolsNodeConfig) (string, error) {
	said, err := w.react(x, config).Generate(w.ctx, question)
	if err != nil {
		return "", err
	}
	return said.Content, nil
}

func reactStreamed(w *world, x *settle.Executor, config compose.ToolsNodeConfig) (string, error) {
	chunks, err := w.react(x, config).Stream(w.ctx, question)
	if err != nil {
		return "", err
	}
	said, err := schema.ConcatMessageStream(chunks)
	if err != nil {
		return "", err
	}
	return said.Content, nil
}

// adkRunner is an ADK agent with checkpoints.
func (w *world) adkRunner(x *settle.Executor, config compose.ToolsNodeConfig, saved compose.CheckPointStore, streamed bool) *adk.Runner {
	w.Helper()
	a, err := adk.NewChatModelAgent(w.ctx, &adk.ChatModelAgentConfig{
		Name: "support", Description: "Supports.", Model: w.chat,
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: config},
		Handlers:    []adk.ChatModelAgentMiddleware{settleeino.Handler(x)},
	})
	if err != nil {
		w.Fatal(err)
	}
	return adk.NewRunner(w.ctx, adk.RunnerConfig{Agent: a, EnableStreaming: streamed, CheckPointStore: saved})
}

func adkAgent(streamed bool) agent {
	return func(w *world, x *settle.Executor, config compose.ToolsNodeConfig) (string, error) {
		said, _, err := finish(w.adkRunner(x, config, nil, streamed).Run(w.ctx, question))
		return said, err
	}
}

// finish reads an ADK run to its end: what was said last, and where it was
// interrupted.
func finish(events *adk.AsyncIterator[*adk.AgentEvent]) (said string, interrupts []*adk.InterruptCtx, err error) {
	for {
		event, ok := events.Next()
		if !ok {
			return said, interrupts, err
		}
		if event.Err != nil {
			err = errors.Join(err, event.Err)
		}
		if event.Action != nil && event.Action.Interrupted != nil {
			interrupts = event.Action.Interrupted.InterruptContexts
		}
		if event.Output != nil && event.Output.MessageOutput != nil {
			m, e := event.Output.MessageOutput.GetMessage()
			if e != nil {
				err = errors.Join(err, e)
				continue
			}
			said = m.Content
		}
	}
}

// checkpoints keeps them in memory, as a host's database would.
type checkpoints struct {
	mu   sync.Mutex
	kept map[string][]byte
}

func newCheckpoints() *checkpoints { return &checkpoints{kept: map[string][]byte{}} }

func (c *checkpoints) Get(_ context.Context, id string) ([]byte, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, ok := c.kept[id]
	return slices.Clone(b), ok, nil
}

func (c *checkpoints) Set(_ context.Context, id string, b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept[id] = slices.Clone(b)
	return nil
}

// call is one function call in a turn.
func call(id, name, args string) schema.ToolCall {
	return schema.ToolCall{ID: id, Type: "function", Function: schema.FunctionCall{Name: name, Arguments: args}}
}

// node is a tools node of the config.
func (w *world) node(config compose.ToolsNodeConfig) *compose.ToolsNode {
	w.Helper()
	n, err := compose.NewToolNode(w.ctx, &config)
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// say runs a turn's calls and returns what the model is told of each.
func (w *world) say(n *compose.ToolsNode, calls ...schema.ToolCall) []string {
	w.Helper()
	results, err := n.Invoke(w.ctx, schema.AssistantMessage("", calls))
	if err != nil {
		w.Fatal(err)
	}
	return said(results)
}

// stream is say over a stream of chunks.
func (w *world) stream(n *compose.ToolsNode, calls ...schema.ToolCall) []string {
	w.Helper()
	chunks, err := n.Stream(w.ctx, schema.AssistantMessage("", calls))
	if err != nil {
		w.Fatal(err)
	}
	all := make([]string, len(calls))
	for {
		chunk, err := chunks.Recv()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			w.Fatal(err)
		}
		for i, m := range chunk {
			if m != nil {
				all[i] += said([]*schema.Message{m})[0]
			}
		}
	}
}

// said are the texts of tool messages, those of their parts included.
func said(results []*schema.Message) []string {
	var all []string
	for _, r := range results {
		s := r.Content
		for _, part := range r.UserInputMultiContent {
			if s != "" {
				s += "\n"
			}
			s += part.Text
		}
		all = append(all, s)
	}
	return all
}
