package settleadk_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/scripted"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
	settleadk "github.com/settle-go/settle/tools/adk"
	"github.com/settle-go/settle/tools/adk/example/chatmodel"
)

// world is a scripted model, a ledger, sessions, and what acted.
type world struct {
	*testing.T
	ctx      context.Context
	ledger   store.Ledger
	model    *scripted.Server
	sessions session.Service
	acted    atomic.Int32
}

func newWorld(t *testing.T, turns ...scripted.Turn) *world {
	t.Helper()
	t.Parallel()
	w := &world{T: t, ledger: memory.New(), model: scripted.New(turns...), sessions: session.InMemoryService()}
	t.Cleanup(w.model.Close)
	w.ctx = settle.WithPrincipal(t.Context(), settle.Principal{Tenant: "acme", Subject: "agent"})
	w.ctx = settle.WithTask(w.ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})
	return w
}

// executor is a process's.
func (w *world) executor(options ...settle.Option) *settle.Executor {
	w.Helper()
	x, err := settle.New(w.ledger, append(options, settle.Volatile(), settle.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		w.Fatal(err)
	}
	return x
}

type payArgs struct {
	Order int64  `json:"order"`
	Note  string `json:"note,omitempty"`
}

type paid struct {
	ID string `json:"id"`
}

// contract lets an order identify a payment.
func contract(name string) settle.RawTool {
	return settle.RawTool{Name: name, Contract: settle.Contract{Identity: []string{"order"}, Ignore: []string{"note"}, Resource: "id", NoLookup: true}}
}

// pay is a function tool that counts its runs; do says what else it does.
func (w *world) pay(config functiontool.Config, do func(agent.Context) error) tool.Tool {
	w.Helper()
	if config.Name == "" {
		config.Name = "pay"
	}
	t, err := functiontool.New(config, func(ctx agent.Context, _ payArgs) (paid, error) {
		w.acted.Add(1)
		if do != nil {
			if err := do(ctx); err != nil {
				return paid{}, err
			}
		}
		return paid{"pay_1"}, nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return t
}

// app is an agent in a runner.
type app struct {
	w      *world
	runner *runner.Runner
	events []*session.Event
}

// start puts an agent with the tools behind the plugins.
func (w *world) start(config llmagent.Config, plugins ...*plugin.Plugin) *app {
	w.Helper()
	config.Name, config.Model = "payer", chatmodel.New(w.model.URL())
	if config.Instruction == "" {
		config.Instruction = "You support."
	}
	a, err := llmagent.New(config)
	if err != nil {
		w.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: w.sessions, AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: plugins}})
	if err != nil {
		w.Fatal(err)
	}
	return &app{w: w, runner: r}
}

// guarded is start with settle's plugin.
func (w *world) guarded(x *settle.Executor, tools ...tool.Tool) *app {
	w.Helper()
	return w.start(llmagent.Config{Tools: tools}, w.plugin(x))
}

func (w *world) plugin(x *settle.Executor, options ...settleadk.Option) *plugin.Plugin {
	w.Helper()
	p, err := settleadk.Plugin(x, options...)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// send gives the agent a message and returns the error of the run.
func (a *app) send(ctx context.Context, parts ...*genai.Part) error {
	for event, err := range a.runner.Run(ctx, "user", "session", &genai.Content{Role: "user", Parts: parts}, agent.RunConfig{}) {
		if err != nil {
			return err
		}
		a.events = append(a.events, event)
	}
	return nil
}

// say sends text; the run has to end well.
func (a *app) say(text string) {
	a.w.Helper()
	if err := a.send(a.w.ctx, genai.NewPartFromText(text)); err != nil {
		a.w.Fatal(err)
	}
}

// results are the maps with which calls of the tool were answered.
func (a *app) results(name string) []map[string]any {
	var all []map[string]any
	for _, event := range a.events {
		if event.Content == nil {
			continue
		}
		for _, p := range event.Content.Parts {
			if r := p.FunctionResponse; r != nil && r.Name == name && event.Author != "user" {
				all = append(all, r.Response)
			}
		}
	}
	return all
}

// wantResult wants the n-th answer of the tool to hold the text under the key.
func (a *app) wantResult(name string, n int, key, text string) {
	a.w.Helper()
	results := a.results(name)
	if len(results) <= n {
		a.w.Fatalf("%s was answered %d times, want more than %d: %v", name, len(results), n, results)
	}
	if said, _ := results[n][key].(string); !strings.Contains(said, text) {
		a.w.Errorf("answer %d of %s is %v, want %q under %q", n, name, results[n], text, key)
	}
}

func (w *world) wantActed(want int) {
	w.Helper()
	if got := int(w.acted.Load()); got != want {
		w.Errorf("the tools acted %d times, want %d", got, want)
	}
}

// rows is what the ledger holds.
func (w *world) rows(tenant string) []store.Entry {
	w.Helper()
	rows, err := w.ledger.List(w.ctx, store.Filter{Tenant: tenant})
	if err != nil {
		w.Fatal(err)
	}
	return rows
}

// confirmation answers the newest request to confirm a call.
func (a *app) confirmation(confirmed bool) *genai.Part {
	a.w.Helper()
	for i := len(a.events) - 1; i >= 0; i-- {
		if a.events[i].Content == nil {
			continue
		}
		for _, p := range a.events[i].Content.Parts {
			if c := p.FunctionCall; c != nil && c.Name == "adk_request_confirmation" {
				return &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: c.ID, Name: c.Name, Response: map[string]any{"confirmed": confirmed}}}
			}
		}
	}
	a.w.Fatal("nobody was asked to confirm anything")
	return nil
}
