package settleadk_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/workflowagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/adk/v2/tool/toolutils"
	"google.golang.org/adk/v2/workflow"
	"google.golang.org/genai"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/scripted"
	settleadk "github.com/settle-go/settle/tools/adk"
)

// node runs a workflow of one tool node that retries, and returns its output.
func (w *world) node(t tool.Tool, input map[string]any) (any, error) {
	w.Helper()
	schema, err := jsonschema.For[paid](nil)
	if err != nil {
		w.Fatal(err)
	}
	node, err := workflow.NewToolNodeWithSchemas(t, nil, schema, workflow.NodeConfig{
		RetryConfig: &workflow.RetryConfig{MaxAttempts: 5, InitialDelay: time.Millisecond}})
	if err != nil {
		w.Fatal(err)
	}
	first := workflow.NewFunctionNode("order", func(agent.Context, any) (map[string]any, error) { return input, nil }, workflow.NodeConfig{})
	a, err := workflowagent.New(workflowagent.Config{Name: "flow", Edges: workflow.Chain(workflow.Start, first, node)})
	if err != nil {
		w.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true})
	if err != nil {
		w.Fatal(err)
	}
	var output any
	for event, err := range r.Run(w.ctx, "user", "session", genai.NewContentFromText("go", "user"), agent.RunConfig{}) {
		if err != nil {
			return nil, err
		}
		if event.Output != nil {
			output = event.Output
		}
	}
	return output, nil
}

// toolContext is that of a call outside a run.
func (w *world) toolContext() agent.Context {
	w.Helper()
	var inside agent.Context
	catch, err := functiontool.New(functiontool.Config{Name: "catch"}, func(ctx agent.Context, _ struct{}) (map[string]any, error) {
		inside = ctx
		return map[string]any{}, nil
	})
	if err != nil {
		w.Fatal(err)
	}
	script := scripted.New(scripted.CallTools(scripted.Use("catch", `{}`)), scripted.Say("Caught."))
	w.Cleanup(script.Close)
	alone := &world{T: w.T, ctx: w.ctx, model: script, sessions: session.InMemoryService()}
	alone.start(llmagent.Config{Tools: []tool.Tool{catch}}).say("Catch.")
	return inside
}

func TestS16ANodesRetryMeetsTheLedger(t *testing.T) {
	w := newWorld(t)
	keyed := contract("pay")
	keyed.Contract.NoLookup, keyed.Lookup = false, func(_ context.Context, q settle.Query[json.RawMessage], _ json.RawMessage) (settle.Evidence, error) {
		return q.Happened("pay_1", json.RawMessage(`{"id":"pay_1"}`)), nil
	}
	x := w.executor(settle.WithGuarded(keyed))
	pay := w.tool(x, w.pay(functiontool.Config{}, func(agent.Context) error { return errors.New("i/o timeout") }))
	for range 2 { // the second is a replay, and passes the node's schema too
		output, err := w.node(pay, map[string]any{"order": 7})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]any{"id": "pay_1"}; !reflect.DeepEqual(output, want) {
			t.Errorf("the node gave %v, want %v", output, want)
		}
	}
	w.wantActed(1)
}

// An effect before a result that the tool's own schema refuses.
func TestAnOutputThatItsSchemaRefusesIsUnknownAndNotRepeated(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("count", `{"order":7}`)), scripted.CallTools(scripted.Use("count", `{"order":7}`)), scripted.Say("I see."))
	count, err := functiontool.New(functiontool.Config{Name: "count", OutputSchema: &jsonschema.Schema{Type: "object", Required: []string{"total"}}},
		func(agent.Context, payArgs) (paid, error) {
			w.acted.Add(1)
			return paid{"pay_1"}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	a := w.guarded(w.executor(settle.WithGuarded(contract("count"))), count)
	a.say("Count.")
	w.wantActed(1)
	a.wantResult("count", 0, "status", "unknown")
	a.wantResult("count", 1, "status", "unknown")
}

func (w *world) refundWith(do func() error) settle.AnyTool {
	return settle.Tool[refundArgs, refunded]{
		Name: "refund", Description: "Refund an order.", Contract: settle.Contract{NoLookup: true},
		Do: func(context.Context, settle.Op, refundArgs) (refunded, error) {
			w.acted.Add(1)
			if do != nil {
				return refunded{}, do()
			}
			return refunded{"re_1"}, nil
		},
	}
}

// offered are the executor's own tools.
func offered(t *testing.T, x *settle.Executor, names ...string) []tool.Tool {
	t.Helper()
	all, err := settleadk.Tools(x, names)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// bare is a tool of a host's own, whose result adk doesn't decode.
type bare struct{}

func (bare) Name() string        { return "bare" }
func (bare) Description() string { return "Pay." }
func (bare) IsLongRunning() bool { return false }
func (b bare) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: b.Name(), Description: b.Description()}
}
func (b bare) ProcessRequest(_ agent.Context, req *model.LLMRequest) error {
	return toolutils.PackTool(req, b)
}
func (bare) Run(agent.Context, any) (map[string]any, error) {
	return map[string]any{"id": int64(1<<53 + 1)}, nil
}

// The model is told a number of 2^53 or more as it is, the first time and later on.
func TestNumbersOfAResultAreNotRounded(t *testing.T) {
	const result = `{"id":9007199254740993}`
	own := settle.RawTool{Name: "own", Contract: contract("own").Contract,
		Schema: json.RawMessage(`{"type":"object","required":["order"],"properties":{"order":{"type":"integer"},"note":{"type":"string"}}}`),
		Do: func(context.Context, settle.Op, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(result), nil
		}}
	for _, name := range []string{"own", "bare"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, scripted.CallTools(scripted.Use(name, `{"order":7}`)), scripted.CallTools(scripted.Use(name, `{"order":7}`)), scripted.Say("Done."))
			x := w.executor(settle.WithTools(own), settle.WithGuarded(contract("bare")))
			a := w.start(llmagent.Config{Tools: append(offered(t, x), bare{})}, w.plugin(x))
			a.say("Pay.")
			for n, got := range a.results(name) {
				if encoded, err := json.Marshal(got["id"]); string(encoded) != "9007199254740993" || err != nil {
					t.Errorf("answer %d is %v, %v", n, got, err)
				}
			}
		})
	}
}

// A name that is misspelt mustn't leave the model without its tool.
func TestANameThatTheExecutorDoesntHaveIsAnError(t *testing.T) {
	w := newWorld(t)
	all, err := settleadk.Tools(w.executor(settle.WithTools(w.refund())), []string{"refund", "reimburse"})
	if err == nil || all != nil || !strings.Contains(err.Error(), `"reimburse"`) {
		t.Errorf("got %v, %v", all, err)
	}
}

func TestTheExecutorsToolsAreOfferedAndRunWithAndWithoutThePlugin(t *testing.T) {
	for _, plugged := range []bool{true, false} {
		w := &world{}
		t.Run("", func(t *testing.T) {
			w = newWorld(t,
				scripted.CallTools(scripted.Use("refund", `{"order":7}`)), scripted.CallTools(scripted.Use("refund", `{"order":7}`), scripted.Use("refund", `{"order":9007199254740993}`)),
				scripted.Say("Done."))
			x := w.executor(settle.WithTools(w.refund()))
			config := llmagent.Config{Tools: offered(t, x)}
			a := w.start(config)
			if plugged {
				a = w.start(config, w.plugin(x))
			}
			a.say("Refund.")
			w.wantActed(1)
			a.wantResult("refund", 0, "id", "re_1")
			a.wantResult("refund", 1, "settle_note", "replayed")
			a.wantResult("refund", 2, "status", "invalid_arguments")
			shown := w.model.Requests()[0].Tools
			if len(shown) != 1 || shown[0].Description != "Refund an order." || !strings.Contains(string(shown[0].Schema), `"order"`) {
				t.Errorf("the model was offered %+v", shown)
			}
		})
	}
}

func TestTheHostsMistakesEndTheRunBeforeTheModelIsAsked(t *testing.T) {
	w := newWorld(t)
	a := w.guarded(w.executor(), w.pay(functiontool.Config{}, nil))
	bare := w.Context()
	if err := a.send(bare, genai.NewPartFromText("Pay.")); !errors.Is(err, settle.ErrNoPrincipal) {
		t.Errorf("got %v", err)
	}
	bare = settle.WithPrincipal(bare, settle.Principal{Tenant: "acme", Subject: "agent"})
	if err := a.send(bare, genai.NewPartFromText("Pay.")); !errors.Is(err, settle.ErrNoTask) {
		t.Errorf("got %v", err)
	}
	if n := len(w.model.Requests()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

func TestR06PrincipalAndTaskComeFromTheSessionWhereTheHostSaysSo(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Paid."))
	x := w.executor(settle.WithGuarded(contract("pay")))
	a := w.start(llmagent.Config{Tools: []tool.Tool{w.pay(functiontool.Config{}, nil)}},
		w.plugin(x, settleadk.PrincipalFromSession(), settleadk.TaskFromState("case", "support")))
	if err := a.send(w.Context(), genai.NewPartFromText("Pay.")); err == nil || !strings.Contains(err.Error(), "TaskFromState") {
		t.Errorf("without the key in the state the run ended with %v", err)
	}
	w.sessions = session.InMemoryService()
	if _, err := w.sessions.Create(w.ctx, &session.CreateRequest{AppName: "app", UserID: "user", SessionID: "session", State: map[string]any{"case": "case-42"}}); err != nil {
		t.Fatal(err)
	}
	a = w.start(llmagent.Config{Tools: []tool.Tool{w.pay(functiontool.Config{}, nil)}},
		w.plugin(x, settleadk.PrincipalFromSession(), settleadk.TaskFromState("case", "support")))
	if err := a.send(w.Context(), genai.NewPartFromText("Pay.")); err != nil {
		t.Fatal(err)
	}
	rows := w.rows("app")
	if len(rows) != 1 || rows[0].Of.Subject != "user" || rows[0].Of.Task != "case-42" || rows[0].Of.Goal != "support" {
		t.Errorf("the ledger has %+v", rows)
	}
}

// A tool that declares its parameters in the form of the Gemini API.
type plain struct{ *world }

func (plain) Name() string        { return "plain" }
func (plain) Description() string { return "Plain." }
func (plain) IsLongRunning() bool { return false }
func (plain) Declaration() *genai.FunctionDeclaration {
	one := 1.0
	yes := true
	return &genai.FunctionDeclaration{Name: "plain", Parameters: &genai.Schema{Type: genai.TypeObject, Required: []string{"n", "of"}, Properties: map[string]*genai.Schema{
		"n": {Type: genai.TypeInteger, Minimum: &one}, "of": {Type: genai.TypeArray, Nullable: &yes, Items: &genai.Schema{Type: genai.TypeString, Enum: []string{"a", "b"}}}}}}
}
func (p plain) ProcessRequest(agent.Context, *model.LLMRequest) error { return nil }
func (p plain) Run(agent.Context, any) (map[string]any, error) {
	p.acted.Add(1)
	return map[string]any{}, nil
}

func TestR18ADeclarationInGeminisFormIsChecked(t *testing.T) {
	w := newWorld(t)
	guarded := w.tool(w.executor(), plain{w}).(interface {
		Run(agent.Context, any) (map[string]any, error)
	})
	for _, tc := range []struct {
		args map[string]any
		fits bool
	}{
		{map[string]any{"n": 0.0, "of": nil}, false}, {map[string]any{"n": 1.5, "of": nil}, false}, {map[string]any{"n": 1.0}, false},
		{map[string]any{"n": 1.0, "of": []any{"c"}}, false}, {map[string]any{"n": 1.0, "of": nil}, true}, {map[string]any{"n": 1.0, "of": []any{"a"}}, true},
	} {
		result, err := guarded.Run(w.toolContext(), tc.args)
		if err != nil {
			t.Fatal(err)
		}
		if refused := result["status"] == "invalid_arguments"; refused == tc.fits {
			t.Errorf("%v was answered %v", tc.args, result)
		}
	}
	w.wantActed(2)
}

func TestToolRefusesWhatCannotRun(t *testing.T) {
	w := newWorld(t)
	if _, err := settleadk.Tool(w.executor(), idle{}); err == nil || !strings.Contains(err.Error(), `"idle" can't be run`) {
		t.Errorf("got %v", err)
	}
}

type idle struct{}

func (idle) Name() string        { return "idle" }
func (idle) Description() string { return "" }
func (idle) IsLongRunning() bool { return false }

// spans are those of the package's tests: adk takes its tracer from the global
// provider, which can be set once.
var spans = sync.OnceValues(func() (*tracetest.SpanRecorder, *sdktrace.TracerProvider) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	otel.SetTracerProvider(provider)
	return recorder, provider
})

// adk opens the span of a call, and settle writes onto it.
func TestS62AdksSpanOfACallHasSettlesAttributes(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Paid."))
	recorder, provider := spans()
	ctx, root := provider.Tracer("test").Start(w.ctx, "root")
	w.ctx = ctx
	x := w.executor(settle.WithGuarded(contract("pay")), settle.WithJoinedSpans())
	w.guarded(x, w.pay(functiontool.Config{}, nil)).say("Pay.")
	root.End()
	executed, ours := 0, 0
	for _, s := range recorder.Ended() {
		if s.SpanContext().TraceID() != root.SpanContext().TraceID() || !strings.HasPrefix(s.Name(), "execute_tool") {
			continue
		}
		executed++
		for _, a := range s.Attributes() {
			if a.Key == "settle.operation" {
				ours++
			}
		}
	}
	// adk opens one for the replay as well; only the execution is settle's.
	if executed != 2 || ours != 1 {
		t.Errorf("there are %d spans of calls, and %d of them carry an operation", executed, ours)
	}
}
