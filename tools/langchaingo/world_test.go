package settlelangchaingo_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/tools"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/internal/scripted"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
	settlelangchaingo "github.com/settle-go/settle/tools/langchaingo"
)

// world is a model, the framework's client on it, a ledger and a far side.
type world struct {
	*testing.T
	ctx    context.Context
	ledger store.Ledger
	pay    *farside.Payments
	model  *scripted.Server
	llm    *openai.LLM

	mu   sync.Mutex
	acts map[string]int
}

func newWorld(t *testing.T, turns ...scripted.Turn) *world {
	t.Helper()
	t.Parallel()
	w := &world{T: t, ledger: memory.New(), pay: farside.NewPayments(), model: scripted.New(turns...), acts: map[string]int{}}
	t.Cleanup(w.pay.Close)
	t.Cleanup(w.model.Close)
	llm, err := openai.New(openai.WithBaseURL(w.model.URL()+"/v1"), openai.WithToken("none"), openai.WithModel("scripted"))
	if err != nil {
		t.Fatal(err)
	}
	w.llm = llm
	w.ctx = settle.WithPrincipal(t.Context(), settle.Principal{Tenant: "acme", Subject: "agent"})
	w.ctx = settle.WithTask(w.ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})
	return w
}

// act counts an effect.
func (w *world) act(label string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acts[label]++
}

func (w *world) wantActs(want map[string]int) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !maps.Equal(w.acts, want) {
		w.Errorf("the tools acted %v, want %v", w.acts, want)
	}
}

func (w *world) wantRefunds(want int) {
	w.Helper()
	if got := len(w.pay.Effects()); got != want {
		w.Errorf("%d refunds were made, want %d", got, want)
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

// plain is a tool as the framework's users write one.
type plain struct {
	name string
	run  func(ctx context.Context, input string) (string, error)
}

func (p plain) Name() string        { return p.name }
func (p plain) Description() string { return "Does " + p.name + "." }
func (p plain) Call(ctx context.Context, input string) (string, error) {
	return p.run(ctx, input)
}

// book is a tool that counts its runs.
func (w *world) book(run func(ctx context.Context, input string) (string, error)) tools.Tool {
	return plain{"book", func(ctx context.Context, input string) (string, error) {
		w.act("book")
		return run(ctx, input)
	}}
}

func booked(context.Context, string) (string, error) { return "booked", nil }

const seatSchema = `{"type":"object","additionalProperties":false,"required":["seat"],` +
	`"properties":{"seat":{"type":"integer"},"note":{"type":"string"}}}`

// guard puts an executor before the tool.
func (w *world) guard(x *settle.Executor, tool tools.Tool, schema string) tools.Tool {
	w.Helper()
	all, err := settlelangchaingo.Guard(x, settlelangchaingo.Guarded{Tool: tool, Schema: json.RawMessage(schema)})
	if err != nil {
		w.Fatal(err)
	}
	return all[0]
}

// say calls a tool as the framework's executor does.
func (w *world) say(tool tools.Tool, input string) string {
	w.Helper()
	said, err := tool.Call(w.ctx, input)
	if err != nil {
		w.Fatal(err)
	}
	return said
}

// executors are the tools that an executor runs.
func (w *world) executors(x *settle.Executor) []tools.Tool {
	w.Helper()
	all, err := settlelangchaingo.Tools(x, nil)
	if err != nil {
		w.Fatal(err)
	}
	return all
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

// agent is one of the framework's agents, and how its model calls a tool.
type agent struct {
	of   func(w *world, tools []tools.Tool) agents.Agent
	call func(tool, input string) scripted.Turn
	// say is how its model answers.
	say func(text string) scripted.Turn
}

var everyAgent = map[string]agent{
	"functions": {
		of: func(w *world, tools []tools.Tool) agents.Agent {
			return agents.NewOpenAIFunctionsAgent(w.llm, tools)
		},
		call: func(tool, input string) scripted.Turn {
			return scripted.CallTools(scripted.Use(tool, map[string]string{"__arg1": input}))
		},
		say: scripted.Say,
	},
	"one shot": {
		of: func(w *world, tools []tools.Tool) agents.Agent { return agents.NewOneShotAgent(w.llm, tools) },
		call: func(tool, input string) scripted.Turn {
			return scripted.Say("Thought: I call it.\nAction: " + tool + "\nAction Input: " + input)
		},
		say: func(text string) scripted.Turn { return scripted.Say("Final Answer: " + text) },
	},
}

func (w *world) run(x *settle.Executor, a agents.Agent) (string, error) {
	return chains.Run(w.ctx, settlelangchaingo.Chain(x, agents.NewExecutor(a)), "Where is my parcel?")
}

// told says whether the n-th request to the model holds the text.
func (w *world) told(n int, text string) bool {
	w.Helper()
	requests := w.model.Requests()
	if len(requests) <= n {
		w.Fatalf("the model was asked %d times, want more than %d", len(requests), n)
	}
	for _, m := range requests[n].Messages {
		if strings.Contains(m.Text, text) {
			return true
		}
	}
	return false
}
