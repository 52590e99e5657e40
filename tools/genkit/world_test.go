package settlegenkit_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/compat_oai/openai"
	"github.com/openai/openai-go/option"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/scripted"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
	settlegenkit "github.com/settle-go/settle/tools/genkit"
)

// world is a scripted model behind genkit's own plugin, a ledger, and what acted.
type world struct {
	*testing.T
	ctx    context.Context
	ledger store.Ledger
	model  *scripted.Server
	g      *genkit.Genkit
	acted  atomic.Int32
	// done has a value for each payment that somebody approved.
	done chan struct{}
}

func newWorld(t *testing.T, turns ...scripted.Turn) *world {
	t.Helper()
	t.Parallel()
	w := &world{T: t, ledger: memory.New(), model: scripted.New(turns...), done: make(chan struct{}, 8)}
	t.Cleanup(w.model.Close)
	w.g = genkit.Init(t.Context(), genkit.WithDefaultModel("openai/gpt-4o"), genkit.WithPlugins(&openai.OpenAI{
		APIKey: "none", Opts: []option.RequestOption{option.WithBaseURL(w.model.URL() + "/v1/"), option.WithMaxRetries(0)}}))
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

// pay is a tool of genkit that counts its runs; do says what else it does.
func (w *world) pay(name string, do func(*ai.ToolContext) error) ai.Tool {
	return ai.NewTool(name, "Pay an order.", func(ctx *ai.ToolContext, _ payArgs) (paid, error) {
		w.acted.Add(1)
		if do != nil {
			if err := do(ctx); err != nil {
				return paid{}, err
			}
		}
		return paid{"pay_1"}, nil
	})
}

// generate runs a prompt with the options; it has to end well.
func (w *world) generate(options ...ai.GenerateOption) *ai.ModelResponse {
	w.Helper()
	response, err := genkit.Generate(w.ctx, w.g, append(options, ai.WithPrompt("Pay order 7."))...)
	if err != nil {
		w.Fatal(err)
	}
	return response
}

// results are the texts of the tool results at the end of the n-th request.
func (w *world) results(n int) []string {
	w.Helper()
	requests := w.model.Requests()
	if len(requests) <= n {
		w.Fatalf("the model was asked %d times, want more than %d", len(requests), n)
	}
	var all []string
	for _, r := range requests[n].Results() {
		all = append(all, r.Text)
	}
	return all
}

// wantResults wants the results of the n-th request to contain the texts, in
// any order: genkit gathers them as they come.
func (w *world) wantResults(n int, want ...string) {
	w.Helper()
	got := w.results(n)
	if len(got) != len(want) {
		w.Errorf("request %d has the results %q, want %q", n, got, want)
	}
	for _, text := range want {
		if !strings.Contains(strings.Join(got, "\n"), text) {
			w.Errorf("request %d has the results %q, want %q among them", n, got, text)
		}
	}
}

func (w *world) wantActed(want int) {
	w.Helper()
	if got := int(w.acted.Load()); got != want {
		w.Errorf("the tools acted %d times, want %d", got, want)
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

var _ ai.Middleware = (*settlegenkit.Guard)(nil)
